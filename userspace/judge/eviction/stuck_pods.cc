// SPDX-License-Identifier: Apache-2.0
#include "judge/eviction/stuck_pods.h"

#include "judge/eviction/predicted_release.h"
#include "judge/eviction/selection.h"

#include <algorithm>
#include <utility>

namespace headroom::judge_eviction {
namespace {

// A wait at memory.high is counted when it ends, two seconds later at most; a gap longer than this
// is none.
constexpr Duration kMaxWaitGap = std::chrono::seconds(5);

Throttled* find_throttled(LadderPass& pass, CgroupId cgroup) {
  const auto found = std::find_if(pass.ladder.throttled.begin(), pass.ladder.throttled.end(),
                                  [&](const Throttled& each) { return each.cgroup == cgroup; });
  return found == pass.ladder.throttled.end() ? nullptr : &*found;
}

void restart_stall_window(const LadderPass& pass, Throttled& throttled, Duration stalled) {
  throttled.since = throttled.last = pass.at;
  throttled.stalled_before = throttled.stalled = stalled;
}

// A wait of a quarter of the time is no life; less is how memory.high is meant to work.
bool waits_enough(const Throttled& throttled, Instant at) {
  return throttled.stalled - throttled.stalled_before >= (at - throttled.since) / 4;
}

void watch_limit(LadderPass& pass, CgroupId pod, CgroupId cgroup, Bytes usage, Bytes high,
                 Duration stalled) {
  const bool at_limit = usage.count >= high.count - high.count / 16;
  Throttled* throttled = find_throttled(pass, cgroup);
  if (!throttled) {
    if (!at_limit) return;
    throttled = &pass.ladder.throttled.emplace_back(
        Throttled{.pod = pod, .cgroup = cgroup, .since = pass.at, .last = pass.at});
    return restart_stall_window(pass, *throttled, stalled);
  }
  if (stalled > throttled->stalled) {
    throttled->stalled = stalled;
    throttled->last = pass.at;
  }
  const bool is_expired = pass.at - throttled->last > kMaxWaitGap;
  const bool idle = pass.at - throttled->since >= *pass.policy.ladder.stuck_duration &&
                    !waits_enough(*throttled, pass.at);
  if (!is_expired && !idle) return;
  throttled->since = pass.at;
  throttled->stalled_before = stalled;
}

const MemoryHighOverride* held_limit(const LadderPass& pass, CgroupId pod, CgroupId cgroup) {
  for (const MemoryHighOverride& each : pass.ladder.held)
    if (each.cgroup == pod &&
        (!each.relaxed || each.part.cgroup == cgroup || (each.part.whole() && cgroup == pod)))
      return &each;
  return nullptr;
}

struct MemoryHigh {
  Part part;
  Bytes high, usage;
  std::optional<Bytes> max{};  // at this usage the kernel kills: at its memory.max or its pod's
};

// A container may take what is left below its pod's memory.max, which others of the pod share.
std::optional<Bytes> nearest_max(const std::optional<Bytes>& own, Bytes usage,
                                 const hr_record& pod) {
  const auto of_pod = limit_in(pod.memory_max);
  if (!of_pod) return own;
  const Bytes shared{of_pod->count - static_cast<std::int64_t>(pod.memory_usage) + usage.count};
  return own ? std::min(*own, shared) : shared;
}

std::optional<MemoryHigh> limit_of(const PodReading& reading, CgroupId cgroup) {
  const hr_record& pod = *reading.record;
  if (pod.memory_max == HR_UNKNOWN) return std::nullopt;
  if (cgroup == reading.cgroup) {
    const auto high = limit_in(pod.memory_high);
    if (!high) return std::nullopt;
    const Bytes usage{static_cast<std::int64_t>(pod.memory_usage)};
    return MemoryHigh{.part = {}, .high = *high, .usage = usage, .max = limit_in(pod.memory_max)};
  }
  for (const PartReading& part : reading.parts->parts)
    if (part.cgroup == cgroup && part.high && part.usage)
      return MemoryHigh{.part = {.unit = EvictionUnit::kContainer, .cgroup = cgroup},
                        .high = *part.high,
                        .usage = *part.usage,
                        .max = nearest_max(part.max, *part.usage, pod)};
  return std::nullopt;
}

// Raised by half, but a fifth of memory.max stays between the two: there the kernel slows a task to
// 4 KiB a second divided by the square of its overage (calculate_high_delay(), 6.1 to 7.2), so that
// one needs a minute from a raised limit of 50 MiB to the kernel's kill, and longer from a larger
// one: time enough to see that it is stuck again. Absent: it is that near already, or
// memory.available would fall below the threshold (and the margin of `squeeze`) if the container
// took what it may.
std::optional<Bytes> raised_limit(const LadderPass& pass, const MemoryHigh& limit) {
  Bytes raised = round_up_to_page(limit.high.count + limit.high.count / 2);
  if (limit.max) raised = std::min(raised, round_down_to_page(limit.max->count / 5 * 4));
  if (raised.count - limit.high.count < limit.high.count / 16) return std::nullopt;
  const std::int64_t more = std::max<std::int64_t>(raised.count - limit.usage.count, 0);
  const bool is_short =
      pass.memory && pass.memory->seen->available - more <
                         pass.memory->level(pass.policy.ladder.lower_high_margin.value_or(0));
  return is_short ? std::nullopt : std::optional(raised);
}

Reason reason_of(const Throttled& throttled, const MemoryHigh& limit, Instant at) {
  Reason reason;
  reason.cause = Cause::kStuck;
  reason.hard = false;
  reason.threshold = limit.high.count;
  reason.used = limit.usage.count;
  reason.sampled_at = at;
  reason.first_crossed = throttled.since;
  return reason;
}

void raise_limit(LadderPass& pass, const PodReading& reading, const MemoryHigh& limit, Bytes raised,
                 Throttled& throttled) {
  Decision decision = pass.step(Act::kRaiseMemoryHigh, reading.pod, reading.cgroup, raised);
  decision.reason = reason_of(throttled, limit, pass.at);
  decision.part = limit.part;
  pass.ladder.held.push_back({.pod = reading.pod,
                              .cgroup = reading.cgroup,
                              .part = limit.part,
                              .relaxed = true,
                              .found = limit.high,
                              .set = raised,
                              .since = pass.at,
                              .until = pass.at + pass.policy.ladder.raise_high_duration});
  throttled.relaxed = pass.at;
  restart_stall_window(pass, throttled, throttled.stalled);
  pass.verdict.decisions.push_back(std::move(decision));
}

void evict(LadderPass& pass, const PodReading& reading, const MemoryHigh& limit,
           const Throttled& throttled) {
  Decision decision =
      make_eviction(pass.policy, pass.snapshot, reading, reason_of(throttled, limit, pass.at));
  decision.rank_info.candidates = 1;
  decision.rank_info.predicted = predicted_release(Signal::kMemoryAvailable, reading);
  decision.rank_info.predicted_in = predicted_time(reading);
  pass.verdict.decisions.push_back(std::move(decision));
}

}  // namespace

void update_throttled(LadderPass& pass) {
  if (!pass.policy.ladder.stuck_duration) {
    pass.ladder.throttled.clear();
    return;
  }
  for (const PodReading& reading : pass.snapshot.pods) {
    if (!reading.parts || !pass.may_act_on(reading)) continue;
    const auto high = limit_in(reading.record->memory_high);
    if (high && reading.parts->stalled)
      watch_limit(pass, reading.cgroup, reading.cgroup,
                  Bytes{static_cast<std::int64_t>(reading.record->memory_usage)}, *high,
                  *reading.parts->stalled);
    for (const PartReading& part : reading.parts->parts)
      if (part.high && part.usage && part.stalled)
        watch_limit(pass, reading.cgroup, part.cgroup, *part.usage, *part.high, *part.stalled);
  }
  std::erase_if(pass.ladder.throttled, [&](const Throttled& each) {
    if (!pass.pod(each.pod)) return true;
    const Duration memory =
        pass.policy.ladder.raise_high_duration + 10 * *pass.policy.ladder.stuck_duration;
    return pass.at - each.last > 2 * kMaxWaitGap &&
           (each.relaxed == Instant{} || pass.at - each.relaxed > memory);
  });
}

void raise_or_evict_stuck(LadderPass& pass) {
  if (!pass.policy.ladder.stuck_duration) return;
  for (Throttled& each : pass.ladder.throttled) {
    if (pass.at - each.since < *pass.policy.ladder.stuck_duration || !waits_enough(each, pass.at))
      continue;
    const PodReading* reading = pass.pod(each.pod);
    const MemoryHighOverride* held = held_limit(pass, each.pod, each.cgroup);
    if (!reading || !pass.may_act_on(*reading) || (held && !held->relaxed)) continue;  // squeezed
    const auto limit = limit_of(*reading, each.cgroup);
    if (!limit) continue;
    const bool may_raise =
        pass.policy.ladder.raise_high_duration > Duration::zero() && each.relaxed == Instant{};
    const auto raised = may_raise ? raised_limit(pass, *limit) : std::nullopt;
    if (raised)
      raise_limit(pass, *reading, *limit, *raised, each);
    else if (pass.policy.ladder.evict_stuck && !pass.is_already_evicted(each.pod))
      evict(pass, *reading, *limit, each);
  }
}

bool is_stuck(const Policy& policy, const History& history, CgroupId pod) {
  const auto& all = history.ladder.throttled;
  return policy.ladder.stuck_duration &&
         std::any_of(all.begin(), all.end(), [&](const Throttled& each) {
           return each.pod == pod &&
                  each.last - each.since >= *policy.ladder.stuck_duration - kMaxWaitGap;
         });
}

}  // namespace headroom::judge_eviction
