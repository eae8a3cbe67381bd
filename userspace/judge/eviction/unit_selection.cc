// SPDX-License-Identifier: Apache-2.0
#include "judge/eviction/unit_selection.h"

#include <algorithm>

namespace headroom::judge_eviction {
namespace {

// A crossing that lasts longer than this is another story.
constexpr Duration kPartialEvictionLifetime = std::chrono::minutes(5);

EvictionScope whole_pod(const PodReading& reading) {
  EvictionScope scope{.part = {}, .release = {}, .held = {}, .request = reading.memory_request};
  if (!reading.record) return scope;
  scope.held = working_set(*reading.record);
  if (const auto held = held_by_processes(*reading.record)) scope.release = held->count;
  return scope;
}

EvictionScope container(const PartReading& part, bool group) {
  EvictionScope scope{
      .part = {.unit = EvictionUnit::kContainer, .cgroup = part.cgroup, .group = group},
      .release = {},
      .held = part.working_set,
      .request = part.memory_request};
  if (part.release) scope.release = part.release->count;
  return scope;
}

// The one that holds most above its request, by what comes back.
const PartReading* worst_container(const PodParts& parts) {
  const PartReading* worst = nullptr;
  for (const PartReading& part : parts.parts) {
    if (!part.container || !part.populated || !part.release || part.release->count == 0) continue;
    const auto over = [](const PartReading& each) { return *each.release - each.memory_request; };
    if (!worst || over(part) > over(*worst)) worst = &part;
  }
  return worst;
}

std::optional<EvictionScope> largest_process(const PodReading& pod) {
  const auto& largest = pod.parts->largest;
  if (!largest) return std::nullopt;
  if (largest->group == pod.cgroup) return std::nullopt;
  if (largest->group != CgroupId{}) {
    const PartReading* group = reading_of(pod, largest->group);
    return group ? std::optional(container(*group, true)) : std::nullopt;
  }
  return EvictionScope{.part = {.unit = EvictionUnit::kProcess,
                                .cgroup = largest->cgroup,
                                .process = largest->name,
                                .comm = largest->comm},
                       .release = largest->held.count,
                       .held = pod.record ? working_set(*pod.record) : std::nullopt,
                       .request = pod.memory_request};
}

std::optional<EvictionScope> part_of(EvictionUnit unit, const PodReading& pod) {
  switch (unit) {
    case EvictionUnit::kPod:
      return std::nullopt;
    case EvictionUnit::kContainer:
      if (const PartReading* worst = worst_container(*pod.parts)) return container(*worst, false);
      return std::nullopt;
    case EvictionUnit::kProcess:
      return largest_process(pod);
  }
  return std::nullopt;
}

bool part_killed_since(const Reason& reason, const History& history, CgroupId pod) {
  return std::any_of(history.partial_evictions.begin(), history.partial_evictions.end(),
                     [&](const PartialEviction& taken) {
                       return taken.pod == pod && taken.killed_at >= reason.first_crossed;
                     });
}

bool has_dying_part(const History& history, CgroupId pod) {
  return std::any_of(history.victims.begin(), history.victims.end(), [&](const Victim& victim) {
    return victim.cgroup == pod && !victim.part.whole();
  });
}

bool is_for_memory(const Reason& reason) {
  return reason.cause == Cause::kThreshold && reason.limit == StorageLimit::kNone &&
         condition_of(reason.signal) == Condition::kMemoryPressure;
}

}  // namespace

EvictionScope choose_scope(const Policy& policy, const PodReading& reading, const Reason& reason,
                           std::int64_t missing, const History& history) {
  const EvictionScope whole = whole_pod(reading);
  if (!is_for_memory(reason) || !reading.parts || reading.parts->oom_group) return whole;
  if (has_dying_part(history, reading.cgroup) || part_killed_since(reason, history, reading.cgroup))
    return whole;
  const auto part = part_of(reading.unit.value_or(policy.eviction_unit), reading);
  const bool enough = part && part->release && *part->release >= missing;
  return enough ? *part : whole;
}

const PartReading* reading_of(const PodReading& pod, CgroupId part) {
  if (!pod.parts) return nullptr;
  const auto& parts = pod.parts->parts;
  const auto found = std::find_if(parts.begin(), parts.end(),
                                  [&](const PartReading& each) { return each.cgroup == part; });
  return found == parts.end() ? nullptr : &*found;
}

bool is_part_gone(const Victim& victim, const PodReading* reading) {
  if (!reading) return true;
  if (victim.part.unit == EvictionUnit::kProcess) return victim.gone_at != Instant{};
  if (!reading->parts) return false;  // parts are no longer read
  const PartReading* part = reading_of(*reading, victim.part.cgroup);
  return !part || !part->populated;
}

std::int64_t expected_from_parts(const History& history, CgroupId pod) {
  std::int64_t due = 0;
  for (const Victim& victim : history.victims)
    if (victim.cgroup == pod && !victim.part.whole()) due += victim.due.value_or(0);
  return due;
}

void record_partial_eviction(CgroupId pod, Instant killed_at, History& history) {
  for (PartialEviction& taken : history.partial_evictions)
    if (taken.pod == pod) {
      taken.killed_at = killed_at;
      return;
    }
  history.partial_evictions.push_back({.pod = pod, .killed_at = killed_at});
}

void expire_partial_evictions(const Snapshot& snapshot, History& history) {
  std::erase_if(history.partial_evictions, [&](const PartialEviction& taken) {
    if (snapshot.at - taken.killed_at > kPartialEvictionLifetime) return true;
    return std::none_of(snapshot.pods.begin(), snapshot.pods.end(),
                        [&](const PodReading& pod) { return pod.cgroup == taken.pod; });
  });
}

}  // namespace headroom::judge_eviction
