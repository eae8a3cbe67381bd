// SPDX-License-Identifier: Apache-2.0
#include "judge/eviction/part.h"

#include <algorithm>

namespace headroom::judge_eviction {
namespace {

// A crossing that lasts longer than this is another story.
constexpr Duration kRemembered = std::chrono::minutes(5);

Taking all_of(const PodReading& reading) {
  Taking taking{.part = {}, .release = {}, .held = {}, .request = reading.memory_request};
  if (!reading.record) return taking;
  taking.held = working_set(*reading.record);
  if (const auto held = held_by_processes(*reading.record)) taking.release = held->count;
  return taking;
}

Taking container(const PartReading& part, bool group) {
  Taking taking{.part = {.unit = EvictionUnit::kContainer, .cgroup = part.cgroup, .group = group},
                .release = {},
                .held = part.working_set,
                .request = part.memory_request};
  if (part.release) taking.release = part.release->count;
  return taking;
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

std::optional<Taking> largest_process(const PodReading& pod) {
  const auto& largest = pod.parts->largest;
  if (!largest) return std::nullopt;
  if (largest->group == pod.cgroup) return std::nullopt;
  if (largest->group != CgroupId{}) {
    const PartReading* group = reading_of(pod, largest->group);
    return group ? std::optional(container(*group, true)) : std::nullopt;
  }
  return Taking{.part = {.unit = EvictionUnit::kProcess,
                         .cgroup = largest->cgroup,
                         .process = largest->name,
                         .comm = largest->comm},
                .release = largest->held.count,
                .held = pod.record ? working_set(*pod.record) : std::nullopt,
                .request = pod.memory_request};
}

std::optional<Taking> part_of(EvictionUnit unit, const PodReading& pod) {
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

bool taken_for(const Reason& reason, const History& history, CgroupId pod) {
  return std::any_of(history.parts_taken.begin(), history.parts_taken.end(),
                     [&](const PartTaken& taken) {
                       return taken.pod == pod && taken.killed_at >= reason.first_crossed;
                     });
}

bool part_is_dying(const History& history, CgroupId pod) {
  return std::any_of(history.victims.begin(), history.victims.end(), [&](const Victim& victim) {
    return victim.cgroup == pod && !victim.part.whole();
  });
}

bool is_for_memory(const Reason& reason) {
  return reason.cause == Cause::kThreshold && reason.limit == StorageLimit::kNone &&
         condition_of(reason.signal) == Condition::kMemoryPressure;
}

}  // namespace

Taking take_from(const Policy& policy, const PodReading& reading, const Reason& reason,
                 std::int64_t missing, const History& history) {
  const Taking whole = all_of(reading);
  if (!is_for_memory(reason) || !reading.parts || reading.parts->oom_group) return whole;
  if (part_is_dying(history, reading.cgroup) || taken_for(reason, history, reading.cgroup))
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

bool part_is_gone(const Victim& victim, const PodReading* reading) {
  if (!reading) return true;
  if (victim.part.unit == EvictionUnit::kProcess) return victim.gone_at != Instant{};
  if (!reading->parts) return false;  // nobody looks any more
  const PartReading* part = reading_of(*reading, victim.part.cgroup);
  return !part || !part->populated;
}

std::int64_t due_of_parts(const History& history, CgroupId pod) {
  std::int64_t due = 0;
  for (const Victim& victim : history.victims)
    if (victim.cgroup == pod && !victim.part.whole()) due += victim.due.value_or(0);
  return due;
}

void note_part_taken(CgroupId pod, Instant killed_at, History& history) {
  for (PartTaken& taken : history.parts_taken)
    if (taken.pod == pod) {
      taken.killed_at = killed_at;
      return;
    }
  history.parts_taken.push_back({.pod = pod, .killed_at = killed_at});
}

void forget_parts_taken(const Snapshot& snapshot, History& history) {
  std::erase_if(history.parts_taken, [&](const PartTaken& taken) {
    if (snapshot.at - taken.killed_at > kRemembered) return true;
    return std::none_of(snapshot.pods.begin(), snapshot.pods.end(),
                        [&](const PodReading& pod) { return pod.cgroup == taken.pod; });
  });
}

}  // namespace headroom::judge_eviction
