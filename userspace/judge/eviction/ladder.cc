// SPDX-License-Identifier: Apache-2.0
#include "judge/eviction/ladder.h"

#include "judge/eviction/predicted_release.h"
#include "judge/eviction/selection.h"
#include "judge/eviction/victims.h"
#include "judge/resources/pod_resources.h"

#include <algorithm>
#include <cerrno>

namespace headroom::judge_eviction {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// Between two takings of cache, each a write that is over when the pages are gone.
constexpr Duration kReclaimPause = milliseconds(20);
// While no pod can be reclaimed from, or the kernel cannot reclaim.
constexpr Duration kPause = seconds(5), kLongPause = minutes(10);
// A pod that gave less than was requested is not asked again for this long.
constexpr Duration kTimedOut = seconds(30);
// A step whose end was never reported.
constexpr Duration kOutcomeTimeout = seconds(60);
constexpr Bytes kMinCache{std::int64_t{4} << 20};
// Smaller pods are not what fills the node.
constexpr Bytes kMinLoweredUsage{std::int64_t{16} << 20};
// Each is an asynchronous action, and other actions need room too.
constexpr std::size_t kMaxLoweredPods = 8;
// Above where it was begun for so long, a squeeze ends.
constexpr Duration kAboveMarginDuration = seconds(10);
// It is looked at so often, near its lines.
constexpr Duration kFloor = milliseconds(50);
// A wait at memory.high is counted when it ends, two seconds later at most; a gap longer than this
// is none.
constexpr Duration kMaxWaitGap = seconds(5);
constexpr std::int64_t kPage = 4096;

bool limits_known(const hr_record& record) {
  constexpr std::uint32_t kNeeded = HR_MEMORY_USAGE | HR_MEMORY_STAT | HR_MEMORY_LIMITS;
  return (record.valid & kNeeded) == kNeeded;
}

std::optional<Bytes> limit(hr_u64 value) {
  if (value >= HR_NO_LIMIT) return std::nullopt;
  return Bytes{static_cast<std::int64_t>(value)};
}

// --- where the node stands -----------------------------------------------------------------------

struct MemoryMargin {
  const ThresholdReading* threshold = nullptr;
  const Observation* seen = nullptr;
  bool hard = true;

  std::int64_t level(float margin) const {
    return *threshold->limit + static_cast<std::int64_t>(static_cast<double>(margin) *
                                                         static_cast<double>(seen->capacity));
  }
  bool below(std::optional<float> margin) const {
    return margin && seen->available < level(*margin);
  }
};

// The threshold of memory.available the margins are above: the hard one where there is one.
std::optional<MemoryMargin> find_memory_margin(const Policy& policy, const Snapshot& snapshot,
                                               const Verdict& verdict) {
  const auto& seen = of(snapshot.observations, Signal::kMemoryAvailable);
  if (!seen) return std::nullopt;
  std::optional<MemoryMargin> margin_state;
  for (const ThresholdReading& rank_info : verdict.thresholds) {
    const Threshold& threshold = policy.thresholds[rank_info.index];
    if (threshold.signal != Signal::kMemoryAvailable || !rank_info.limit) continue;
    if (!margin_state || threshold.hard())
      margin_state =
          MemoryMargin{.threshold = &rank_info, .seen = &*seen, .hard = threshold.hard()};
  }
  return margin_state;
}

bool has_lowered(const LadderHistory& ladder) {
  return std::any_of(ladder.held.begin(), ladder.held.end(),
                     [](const MemoryHighOverride& held) { return !held.relaxed; });
}

bool may_reclaim(const Policy& policy, const MemoryMargin& margin_state,
                 const LadderHistory& ladder, Instant at) {
  return margin_state.below(policy.ladder.reclaim_margin) && ladder.taking == Instant{} &&
         at >= ladder.next_step_at;
}

bool may_limit_best_effort(const Policy& policy, const MemoryMargin& margin_state,
                           const LadderHistory& ladder, Instant at) {
  return margin_state.below(policy.ladder.lower_high_margin) && at >= ladder.next_lowering_at &&
         !has_lowered(ladder);
}

// --- a round of it -------------------------------------------------------------------------------

class LadderRun {
 public:
  LadderRun(const Policy& policy, const Snapshot& snapshot, Verdict& verdict)
      : policy_(policy),
        snapshot_(snapshot),
        at_(snapshot.at),
        verdict_(verdict),
        ladder_(verdict.after.ladder),
        memory_(find_memory_margin(policy, snapshot, verdict)) {}

  void update_history() {
    if (ladder_.taking != Instant{} && at_ - ladder_.taking > kOutcomeTimeout) ladder_.taking = {};
    std::erase_if(ladder_.exhausted, [&](const auto& each) { return at_ >= each.until; });
    std::erase_if(ladder_.held, [&](const MemoryHighOverride& held) { return !pod(held.cgroup); });
    if (memory_ && policy_.ladder.lower_high_margin) {
      if (memory_->below(policy_.ladder.lower_high_margin))
        ladder_.above_margin_since = {};
      else if (ladder_.above_margin_since == Instant{})
        ladder_.above_margin_since = at_;
    }
    update_throttled();
  }

  void end_expired_steps() {
    for (MemoryHighOverride& held : ladder_.held) {
      if (held.ending || at_ < held.retry || !is_expired(held)) continue;
      if (is_being_killed(held.cgroup)) continue;
      held.ending = true;
      Decision decision = step(Act::kRestoreMemoryHigh, held.pod, held.cgroup, held.found);
      decision.part = held.part;
      if (held.relaxed) decision.reason.cause = Cause::kStuck;
      verdict_.decisions.push_back(std::move(decision));
    }
  }

  void begin_due_steps() {
    if (memory_ && may_reclaim(policy_, *memory_, ladder_, at_)) reclaim_cache();
    if (memory_ && may_limit_best_effort(policy_, *memory_, ladder_, at_)) lower_memory_highs();
    raise_or_evict_stuck();
  }

 private:
  const PodReading* pod(CgroupId cgroup) const {
    const auto found =
        std::find_if(snapshot_.pods.begin(), snapshot_.pods.end(),
                     [&](const PodReading& reading) { return reading.cgroup == cgroup; });
    return found == snapshot_.pods.end() ? nullptr : &*found;
  }
  // The ladder may act on these pods: not exempt, not already being evicted.
  bool may_act_on(const PodReading& reading) const {
    return reading.record && reading.record->populated != 0 && !reading.critical &&
           !is_excluded(verdict_.after, reading, at_) && limits_known(*reading.record);
  }
  bool is_expired(const MemoryHighOverride& held) const {
    if (at_ >= held.until) return true;
    if (held.relaxed) return policy_.ladder.raise_high_duration == Duration::zero();
    if (!policy_.ladder.lower_high_margin) return true;
    return ladder_.above_margin_since != Instant{} &&
           at_ - ladder_.above_margin_since >= kAboveMarginDuration;
  }

  Decision step(Act act, const std::shared_ptr<const Pod>& pod, CgroupId cgroup,
                std::optional<Bytes> bytes) const {
    constexpr Duration kTime = seconds(10);
    Decision decision{.act = act,
                      .pod = pod,
                      .cgroup = cgroup,
                      .reason = {},
                      .rank_info = {},
                      .steps = {},
                      .part = {},
                      .bytes = bytes,
                      .decided_at = at_,
                      .deadline = at_ + kTime};
    if (!memory_) return decision;
    Reason& reason = decision.reason;
    reason.hard = memory_->hard;
    reason.available = memory_->seen->available;
    reason.capacity = memory_->seen->capacity;
    reason.sampled_at = memory_->seen->at;
    reason.first_crossed = at_;
    const auto margin = act == Act::kReclaimCache ? policy_.ladder.reclaim_margin
                                                  : policy_.ladder.lower_high_margin;
    reason.threshold = memory_->level(margin.value_or(0));
    return decision;
  }

  // --- cache
  bool is_exhausted(CgroupId cgroup) const {
    return std::any_of(ladder_.exhausted.begin(), ladder_.exhausted.end(),
                       [&](const auto& each) { return each.cgroup == cgroup; });
  }
  // The part of its page cache that is not protected. The kernel ignores the protection of the
  // cgroup that it is asked to reclaim from.
  std::int64_t reclaimable(const PodReading& reading) const {
    if (!may_act_on(reading) || is_exhausted(reading.cgroup)) return 0;
    const hr_record& record = *reading.record;
    const auto known = [](hr_u64 value) {
      return value >= HR_NO_LIMIT ? std::int64_t{0} : static_cast<std::int64_t>(value);
    };
    if (record.memory_min == HR_NO_LIMIT || record.memory_low == HR_NO_LIMIT) return 0;
    const std::int64_t kept = std::max(known(record.memory_min), known(record.memory_low));
    const std::int64_t cache = known(record.inactive_file) + known(record.active_file);
    return std::min(cache, static_cast<std::int64_t>(record.memory_usage) - kept);
  }

  void reclaim_cache() {
    const PodReading* largest_cache = nullptr;
    std::int64_t most = kMinCache.count - 1;
    for (const PodReading& reading : snapshot_.pods)
      if (const std::int64_t cache = reclaimable(reading); cache > most) {
        most = cache;
        largest_cache = &reading;
      }
    if (!largest_cache) {
      ladder_.next_step_at = at_ + kPause;
      return;
    }
    verdict_.decisions.push_back(step(Act::kReclaimCache, largest_cache->pod, largest_cache->cgroup,
                                      Bytes{std::min(most, policy_.ladder.reclaim_step.count)}));
  }

  // --- best-effort
  void lower_memory_highs() {
    ladder_.next_lowering_at = at_ + kPause;
    std::vector<const PodReading*> largest;
    for (const PodReading& reading : snapshot_.pods) {
      if (!may_act_on(reading) || qos_class(*reading.pod) != QosClass::kBestEffort) continue;
      const auto usage = static_cast<std::int64_t>(reading.record->memory_usage);
      if (usage < kMinLoweredUsage.count) continue;
      const auto high = limit(reading.record->memory_high);
      if (!high || high->count > usage) largest.push_back(&reading);
    }
    std::sort(largest.begin(), largest.end(), [](const PodReading* a, const PodReading* b) {
      return a->record->memory_usage > b->record->memory_usage;
    });
    if (largest.size() > kMaxLoweredPods) largest.resize(kMaxLoweredPods);
    for (const PodReading* reading : largest)
      limit_to_current_usage(*reading);
  }

  // At current usage, not below: the writer of a limit below usage waits for the reclaim, and the
  // writer is systemd.
  void limit_to_current_usage(const PodReading& reading) {
    const auto usage = static_cast<std::int64_t>(reading.record->memory_usage);
    const Bytes set{(usage + kPage - 1) / kPage * kPage};
    const Duration longest = policy_.ladder.lower_high_limit;
    ladder_.next_lowering_at = at_ + 2 * longest;
    ladder_.held.push_back({.pod = reading.pod,
                            .cgroup = reading.cgroup,
                            .found = limit(reading.record->memory_high),
                            .set = set,
                            .since = at_,
                            .until = at_ + longest});
    verdict_.decisions.push_back(step(Act::kLowerMemoryHigh, reading.pod, reading.cgroup, set));
  }

  // --- the stuck
  Throttled* known(CgroupId cgroup) {
    const auto found = std::find_if(ladder_.throttled.begin(), ladder_.throttled.end(),
                                    [&](const Throttled& each) { return each.cgroup == cgroup; });
    return found == ladder_.throttled.end() ? nullptr : &*found;
  }

  void restart_stall_window(Throttled& throttled, Duration stalled) const {
    throttled.since = throttled.last = at_;
    throttled.stalled_before = throttled.stalled = stalled;
  }

  // A wait of a quarter of the time is no life; less is how memory.high is meant to work.
  static bool waits_enough(const Throttled& throttled, Instant at) {
    return throttled.stalled - throttled.stalled_before >= (at - throttled.since) / 4;
  }

  void watch(CgroupId pod, CgroupId cgroup, Bytes usage, Bytes high, Duration stalled) {
    const bool at_limit = usage.count >= high.count - high.count / 16;
    Throttled* throttled = known(cgroup);
    if (!throttled) {
      if (!at_limit) return;
      throttled = &ladder_.throttled.emplace_back(
          Throttled{.pod = pod, .cgroup = cgroup, .since = at_, .last = at_});
      return restart_stall_window(*throttled, stalled);
    }
    if (stalled > throttled->stalled) {
      throttled->stalled = stalled;
      throttled->last = at_;
    }
    const bool is_expired = at_ - throttled->last > kMaxWaitGap;
    const bool idle =
        at_ - throttled->since >= *policy_.ladder.stuck_duration && !waits_enough(*throttled, at_);
    if (!is_expired && !idle) return;
    throttled->since = at_;
    throttled->stalled_before = stalled;
  }

  void update_throttled() {
    if (!policy_.ladder.stuck_duration) {
      ladder_.throttled.clear();
      return;
    }
    for (const PodReading& reading : snapshot_.pods) {
      if (!reading.parts || !may_act_on(reading)) continue;
      const auto high = limit(reading.record->memory_high);
      if (high && reading.parts->stalled)
        watch(reading.cgroup, reading.cgroup,
              Bytes{static_cast<std::int64_t>(reading.record->memory_usage)}, *high,
              *reading.parts->stalled);
      for (const PartReading& part : reading.parts->parts)
        if (part.high && part.usage && part.stalled)
          watch(reading.cgroup, part.cgroup, *part.usage, *part.high, *part.stalled);
    }
    std::erase_if(ladder_.throttled, [&](const Throttled& each) {
      if (!pod(each.pod)) return true;
      const Duration memory =
          policy_.ladder.raise_high_duration + 10 * *policy_.ladder.stuck_duration;
      return at_ - each.last > 2 * kMaxWaitGap &&
             (each.relaxed == Instant{} || at_ - each.relaxed > memory);
    });
  }

  // Its limits are lifted for the kill, and restored after it.
  bool is_being_killed(CgroupId cgroup) const {
    const auto& victims = verdict_.after.victims;
    return is_already_evicted(cgroup) ||
           std::any_of(victims.begin(), victims.end(), [&](const Victim& victim) {
             return victim.cgroup == cgroup && victim.phase == Victim::Phase::kKilled;
           });
  }

  // By another container of the same pod that is stuck too.
  bool is_already_evicted(CgroupId cgroup) const {
    return std::any_of(verdict_.decisions.begin(), verdict_.decisions.end(),
                       [&](const Decision& decision) {
                         return decision.cgroup == cgroup && !is_ladder(decision.act);
                       });
  }

  const MemoryHighOverride* held(CgroupId pod, CgroupId cgroup) const {
    for (const MemoryHighOverride& each : ladder_.held)
      if (each.cgroup == pod &&
          (!each.relaxed || each.part.cgroup == cgroup || (each.part.whole() && cgroup == pod)))
        return &each;
    return nullptr;
  }

  void raise_or_evict_stuck() {
    if (!policy_.ladder.stuck_duration) return;
    for (Throttled& each : ladder_.throttled) {
      if (at_ - each.since < *policy_.ladder.stuck_duration || !waits_enough(each, at_)) continue;
      const PodReading* reading = pod(each.pod);
      const MemoryHighOverride* limit = held(each.pod, each.cgroup);
      if (!reading || !may_act_on(*reading) || (limit && !limit->relaxed)) continue;  // squeezed
      const bool may_raise = policy_.ladder.raise_high_duration > Duration::zero();
      if (may_raise && each.relaxed == Instant{})
        raise_limit(*reading, each);
      else if (policy_.ladder.evict_stuck && !is_already_evicted(each.pod))
        evict(*reading, each);
    }
  }

  struct MemoryHigh {
    Part part;
    Bytes high, usage;
  };
  std::optional<MemoryHigh> limit_of(const PodReading& reading, CgroupId cgroup) const {
    if (cgroup == reading.cgroup) {
      const auto high = limit(reading.record->memory_high);
      if (!high) return std::nullopt;
      return MemoryHigh{{}, *high, Bytes{static_cast<std::int64_t>(reading.record->memory_usage)}};
    }
    for (const PartReading& part : reading.parts->parts)
      if (part.cgroup == cgroup && part.high && part.usage)
        return MemoryHigh{
            {.unit = EvictionUnit::kContainer, .cgroup = cgroup}, *part.high, *part.usage};
    return std::nullopt;
  }

  static Reason reason_of(const Throttled& throttled, const MemoryHigh& limit, Instant at) {
    Reason reason;
    reason.cause = Cause::kStuck;
    reason.hard = false;
    reason.threshold = limit.high.count;
    reason.used = limit.usage.count;
    reason.sampled_at = at;
    reason.first_crossed = throttled.since;
    return reason;
  }

  void raise_limit(const PodReading& reading, Throttled& throttled) {
    const auto limit = limit_of(reading, throttled.cgroup);
    if (!limit) return;
    const Bytes raised{(limit->high.count + limit->high.count / 2) / kPage * kPage};
    Decision decision = step(Act::kRaiseMemoryHigh, reading.pod, reading.cgroup, raised);
    decision.reason = reason_of(throttled, *limit, at_);
    decision.part = limit->part;
    ladder_.held.push_back({.pod = reading.pod,
                            .cgroup = reading.cgroup,
                            .part = limit->part,
                            .relaxed = true,
                            .found = limit->high,
                            .set = raised,
                            .since = at_,
                            .until = at_ + policy_.ladder.raise_high_duration});
    throttled.relaxed = at_;
    restart_stall_window(throttled, throttled.stalled);
    verdict_.decisions.push_back(std::move(decision));
  }

  void evict(const PodReading& reading, const Throttled& throttled) {
    const auto limit = limit_of(reading, throttled.cgroup);
    if (!limit) return;
    Decision decision =
        make_eviction(policy_, snapshot_, reading, reason_of(throttled, *limit, at_));
    decision.rank_info.candidates = 1;
    decision.rank_info.predicted = predicted_release(Signal::kMemoryAvailable, reading);
    decision.rank_info.predicted_in = predicted_time(reading);
    verdict_.decisions.push_back(std::move(decision));
  }

  const Policy& policy_;
  const Snapshot& snapshot_;
  const Instant at_;
  Verdict& verdict_;
  LadderHistory& ladder_;
  const std::optional<MemoryMargin> memory_;
};

bool is_idle(const Policy& policy, const LadderHistory& ladder) {
  return !policy.ladder.any() && ladder.held.empty() && ladder.throttled.empty();
}

}  // namespace

void run_ladder(const Policy& policy, const Snapshot& snapshot, bool busy, Verdict& verdict) {
  if (is_idle(policy, verdict.after.ladder)) return;
  LadderRun pass(policy, snapshot, verdict);
  pass.update_history();
  // Also during a shortage that no eviction can end: no pod is held longer than stated.
  pass.end_expired_steps();
  if (!busy) pass.begin_due_steps();
}

bool is_ladder_step_due(const Policy& policy, const Snapshot& snapshot, const Verdict& verdict) {
  if (!policy.ladder.any()) return false;
  const auto margin_state = find_memory_margin(policy, snapshot, verdict);
  const LadderHistory& ladder = verdict.after.ladder;
  return margin_state && (may_reclaim(policy, *margin_state, ladder, snapshot.at) ||
                          may_limit_best_effort(policy, *margin_state, ladder, snapshot.at));
}

std::optional<Duration> time_to_ladder_step(const Policy& policy, const Snapshot& snapshot,
                                            const Verdict& verdict) {
  const auto margin = std::max(policy.ladder.reclaim_margin, policy.ladder.lower_high_margin);
  if (!margin) return std::nullopt;
  const auto margin_state = find_memory_margin(policy, snapshot, verdict);
  if (!margin_state) return std::nullopt;
  const auto distance =
      static_cast<double>(margin_state->seen->available - margin_state->level(*margin));
  const std::chrono::duration<double> left{distance / static_cast<double>(policy.fastest_fill)};
  return std::max(std::chrono::duration_cast<Duration>(left), kFloor);
}

bool is_stuck(const Policy& policy, const History& history, CgroupId pod) {
  const auto& all = history.ladder.throttled;
  return policy.ladder.stuck_duration &&
         std::any_of(all.begin(), all.end(), [&](const Throttled& each) {
           return each.pod == pod &&
                  each.last - each.since >= *policy.ladder.stuck_duration - kMaxWaitGap;
         });
}

namespace {

using Result = Outcome::Result;

void record_reclaim_outcome(const Outcome& outcome, LadderHistory& ladder) {
  const bool unable = outcome.error == ENOENT || outcome.error == EOPNOTSUPP;
  switch (outcome.result) {
    case Result::kStarted:
      ladder.taking = outcome.at;
      return;
    case Result::kDryRun:
      ladder.next_step_at = outcome.at + kOutcomeTimeout;
      return;
    case Result::kDone:
    case Result::kGone:
    case Result::kFailed:
      break;
  }
  ladder.taking = {};
  ladder.next_step_at = outcome.at + (unable ? kLongPause : kReclaimPause);
  if (outcome.result != Result::kDone || outcome.error != 0)
    ladder.exhausted.push_back({outcome.decision.cgroup, outcome.at + kTimedOut});
}

void record_limit_outcome(const Outcome& outcome, LadderHistory& ladder) {
  const Decision& decision = outcome.decision;
  const auto held =
      std::find_if(ladder.held.begin(), ladder.held.end(), [&](const MemoryHighOverride& each) {
        return each.cgroup == decision.cgroup && each.part.is(decision.part);
      });
  if (held == ladder.held.end() || outcome.result == Result::kStarted) return;
  const bool done = outcome.result == Result::kDone && outcome.error == 0;
  const bool gone = outcome.result == Result::kGone || outcome.result == Result::kDryRun;
  if (decision.act == Act::kRestoreMemoryHigh) {
    if (done || gone) {
      ladder.held.erase(held);
      return;
    }
    held->ending = false;
    held->retry = outcome.at + kPause;
  } else if (!done) {
    ladder.held.erase(held);
  }
}

}  // namespace

void record_ladder_outcome(const Outcome& outcome, LadderHistory& ladder) {
  if (outcome.decision.act == Act::kReclaimCache)
    record_reclaim_outcome(outcome, ladder);
  else
    record_limit_outcome(outcome, ladder);
}

}  // namespace headroom::judge_eviction
