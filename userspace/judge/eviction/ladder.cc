// SPDX-License-Identifier: Apache-2.0
#include "judge/eviction/ladder.h"

#include "judge/eviction/selection.h"
#include "judge/eviction/stuck_pods.h"
#include "judge/eviction/victims.h"
#include "judge/resources/pod_resources.h"

#include <algorithm>
#include <cerrno>

namespace headroom::judge_eviction {
namespace {

bool limits_known(const hr_record& record) {
  constexpr std::uint32_t kNeeded = HR_MEMORY_USAGE | HR_MEMORY_STAT | HR_MEMORY_LIMITS;
  return (record.valid & kNeeded) == kNeeded;
}

}  // namespace

std::optional<Bytes> limit_in(hr_u64 value) {
  if (value >= HR_NO_LIMIT) return std::nullopt;
  return Bytes{static_cast<std::int64_t>(value)};
}

std::optional<MemoryMargin> find_memory_margin(const Policy& policy, const Snapshot& snapshot,
                                               const Verdict& verdict) {
  const auto& seen = of(snapshot.observations, Signal::kMemoryAvailable);
  if (!seen) return std::nullopt;
  std::optional<MemoryMargin> margin;
  for (const ThresholdReading& reading : verdict.thresholds) {
    const Threshold& threshold = policy.thresholds[reading.index];
    if (threshold.signal != Signal::kMemoryAvailable || !reading.limit) continue;
    if (!margin || threshold.hard())
      margin = MemoryMargin{.threshold = &reading, .seen = &*seen, .hard = threshold.hard()};
  }
  return margin;
}

LadderPass::LadderPass(const Policy& given_policy, const Snapshot& given_snapshot,
                       Verdict& given_verdict)
    : policy(given_policy),
      snapshot(given_snapshot),
      at(given_snapshot.at),
      verdict(given_verdict),
      ladder(given_verdict.after.ladder),
      memory(find_memory_margin(given_policy, given_snapshot, given_verdict)) {}

const PodReading* LadderPass::pod(CgroupId cgroup) const {
  const auto found =
      std::find_if(snapshot.pods.begin(), snapshot.pods.end(),
                   [&](const PodReading& reading) { return reading.cgroup == cgroup; });
  return found == snapshot.pods.end() ? nullptr : &*found;
}

bool LadderPass::may_act_on(const PodReading& reading) const {
  return reading.record && reading.record->populated != 0 && !reading.critical &&
         !is_excluded(verdict.after, reading, at) && limits_known(*reading.record);
}

Decision LadderPass::step(Act act, const std::shared_ptr<const Pod>& target, CgroupId cgroup,
                          std::optional<Bytes> bytes) const {
  constexpr Duration kTime = std::chrono::seconds(10);
  Decision decision{.act = act,
                    .pod = target,
                    .cgroup = cgroup,
                    .reason = {},
                    .rank_info = {},
                    .steps = {},
                    .part = {},
                    .bytes = bytes,
                    .decided_at = at,
                    .deadline = at + kTime};
  if (!memory) return decision;
  Reason& reason = decision.reason;
  reason.hard = memory->hard;
  reason.available = memory->seen->available;
  reason.capacity = memory->seen->capacity;
  reason.sampled_at = memory->seen->at;
  reason.first_crossed = at;
  const auto margin =
      act == Act::kReclaimCache ? policy.ladder.reclaim_margin : policy.ladder.lower_high_margin;
  reason.threshold = memory->level(margin.value_or(0));
  return decision;
}

bool LadderPass::is_being_killed(CgroupId cgroup) const {
  const auto& victims = verdict.after.victims;
  return is_already_evicted(cgroup) ||
         std::any_of(victims.begin(), victims.end(), [&](const Victim& victim) {
           return victim.cgroup == cgroup && victim.phase == Victim::Phase::kKilled;
         });
}

bool LadderPass::is_already_evicted(CgroupId cgroup) const {
  return std::any_of(verdict.decisions.begin(), verdict.decisions.end(),
                     [&](const Decision& decision) {
                       return decision.cgroup == cgroup && !is_ladder(decision.act);
                     });
}

namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// Between two takings of cache, each a write that is over when the pages are gone.
constexpr Duration kReclaimPause = milliseconds(20);
// While the kernel cannot reclaim.
constexpr Duration kLongPause = minutes(10);
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

bool has_lowered(const LadderHistory& ladder) {
  return std::any_of(ladder.held.begin(), ladder.held.end(),
                     [](const MemoryHighOverride& held) { return !held.relaxed; });
}

bool may_reclaim(const Policy& policy, const MemoryMargin& margin, const LadderHistory& ladder,
                 Instant at) {
  return margin.below(policy.ladder.reclaim_margin) && ladder.taking == Instant{} &&
         at >= ladder.next_step_at;
}

bool may_limit_best_effort(const Policy& policy, const MemoryMargin& margin,
                           const LadderHistory& ladder, Instant at) {
  return margin.below(policy.ladder.lower_high_margin) && at >= ladder.next_lowering_at &&
         !has_lowered(ladder);
}

// Also if its cgroup was removed: a unit that is started again would be limited by the settings
// that systemd keeps.
bool is_expired(const LadderPass& pass, const MemoryHighOverride& held) {
  if (pass.at >= held.until || !pass.pod(held.cgroup)) return true;
  if (held.relaxed) return pass.policy.ladder.raise_high_duration == Duration::zero();
  if (!pass.policy.ladder.lower_high_margin) return true;
  return pass.ladder.above_margin_since != Instant{} &&
         pass.at - pass.ladder.above_margin_since >= kAboveMarginDuration;
}

bool is_exhausted(const LadderPass& pass, CgroupId cgroup) {
  return std::any_of(pass.ladder.exhausted.begin(), pass.ladder.exhausted.end(),
                     [&](const auto& each) { return each.cgroup == cgroup; });
}
// The part of its page cache that is not protected. The kernel ignores the protection of the
// cgroup that it is asked to reclaim from.
std::int64_t reclaimable(const LadderPass& pass, const PodReading& reading) {
  if (!pass.may_act_on(reading) || is_exhausted(pass, reading.cgroup)) return 0;
  const hr_record& record = *reading.record;
  const auto known = [](hr_u64 value) {
    return value >= HR_NO_LIMIT ? std::int64_t{0} : static_cast<std::int64_t>(value);
  };
  if (record.memory_min == HR_NO_LIMIT || record.memory_low == HR_NO_LIMIT) return 0;
  const std::int64_t kept = std::max(known(record.memory_min), known(record.memory_low));
  const std::int64_t cache = known(record.inactive_file) + known(record.active_file);
  return std::min(cache, static_cast<std::int64_t>(record.memory_usage) - kept);
}

void reclaim_cache(LadderPass& pass) {
  const PodReading* largest_cache = nullptr;
  std::int64_t most = kMinCache.count - 1;
  for (const PodReading& reading : pass.snapshot.pods)
    if (const std::int64_t cache = reclaimable(pass, reading); cache > most) {
      most = cache;
      largest_cache = &reading;
    }
  if (!largest_cache) {
    pass.ladder.next_step_at = pass.at + kLadderPause;
    return;
  }
  pass.verdict.decisions.push_back(
      pass.step(Act::kReclaimCache, largest_cache->pod, largest_cache->cgroup,
                Bytes{std::min(most, pass.policy.ladder.reclaim_step.count)}));
}

// At current usage, not below: the writer of a limit below usage waits for the reclaim, and the
// writer is systemd.
void limit_to_current_usage(LadderPass& pass, const PodReading& reading) {
  const auto usage = static_cast<std::int64_t>(reading.record->memory_usage);
  const Bytes set = round_up_to_page(usage);
  const Duration longest = pass.policy.ladder.lower_high_limit;
  pass.ladder.next_lowering_at = pass.at + 2 * longest;
  pass.ladder.held.push_back({.pod = reading.pod,
                              .cgroup = reading.cgroup,
                              .found = limit_in(reading.record->memory_high),
                              .set = set,
                              .since = pass.at,
                              .until = pass.at + longest});
  pass.verdict.decisions.push_back(
      pass.step(Act::kLowerMemoryHigh, reading.pod, reading.cgroup, set));
}

void lower_memory_highs(LadderPass& pass) {
  pass.ladder.next_lowering_at = pass.at + kLadderPause;
  std::vector<const PodReading*> largest;
  for (const PodReading& reading : pass.snapshot.pods) {
    if (!pass.may_act_on(reading) || qos_class(*reading.pod) != QosClass::kBestEffort) continue;
    const auto usage = static_cast<std::int64_t>(reading.record->memory_usage);
    if (usage < kMinLoweredUsage.count) continue;
    const auto high = limit_in(reading.record->memory_high);
    if (!high || high->count > usage) largest.push_back(&reading);
  }
  std::sort(largest.begin(), largest.end(), [](const PodReading* a, const PodReading* b) {
    return a->record->memory_usage > b->record->memory_usage;
  });
  if (largest.size() > kMaxLoweredPods) largest.resize(kMaxLoweredPods);
  for (const PodReading* reading : largest)
    limit_to_current_usage(pass, *reading);
}

void update_history(LadderPass& pass) {
  if (pass.ladder.taking != Instant{} && pass.at - pass.ladder.taking > kOutcomeTimeout)
    pass.ladder.taking = {};
  std::erase_if(pass.ladder.exhausted, [&](const auto& each) { return pass.at >= each.until; });
  if (pass.memory && pass.policy.ladder.lower_high_margin) {
    if (pass.memory->below(pass.policy.ladder.lower_high_margin))
      pass.ladder.above_margin_since = {};
    else if (pass.ladder.above_margin_since == Instant{})
      pass.ladder.above_margin_since = pass.at;
  }
  update_throttled(pass);
}

void end_expired_steps(LadderPass& pass) {
  for (MemoryHighOverride& held : pass.ladder.held) {
    if (held.ending || pass.at < held.retry || !is_expired(pass, held)) continue;
    if (pass.is_being_killed(held.cgroup)) continue;
    held.ending = true;
    Decision decision = pass.step(Act::kRestoreMemoryHigh, held.pod, held.cgroup, held.found);
    decision.part = held.part;
    if (held.relaxed) decision.reason.cause = Cause::kStuck;
    pass.verdict.decisions.push_back(std::move(decision));
  }
}

void begin_due_steps(LadderPass& pass) {
  if (pass.memory && may_reclaim(pass.policy, *pass.memory, pass.ladder, pass.at))
    reclaim_cache(pass);
  if (pass.memory && may_limit_best_effort(pass.policy, *pass.memory, pass.ladder, pass.at))
    lower_memory_highs(pass);
  raise_or_evict_stuck(pass);
}

bool is_idle(const Policy& policy, const LadderHistory& ladder) {
  return !policy.ladder.any() && ladder.held.empty() && ladder.throttled.empty();
}

}  // namespace

void run_ladder(const Policy& policy, const Snapshot& snapshot, bool busy, Verdict& verdict) {
  if (is_idle(policy, verdict.after.ladder)) return;
  LadderPass pass(policy, snapshot, verdict);
  update_history(pass);
  // Also during a shortage that no eviction can end: no pod is held longer than stated.
  end_expired_steps(pass);
  if (!busy) begin_due_steps(pass);
}

bool is_ladder_step_due(const Policy& policy, const Snapshot& snapshot, const Verdict& verdict) {
  if (!policy.ladder.any()) return false;
  const auto margin = find_memory_margin(policy, snapshot, verdict);
  const LadderHistory& ladder = verdict.after.ladder;
  return margin && (may_reclaim(policy, *margin, ladder, snapshot.at) ||
                    may_limit_best_effort(policy, *margin, ladder, snapshot.at));
}

std::optional<Duration> time_to_ladder_step(const Policy& policy, const Snapshot& snapshot,
                                            const Verdict& verdict) {
  const auto share = std::max(policy.ladder.reclaim_margin, policy.ladder.lower_high_margin);
  if (!share) return std::nullopt;
  const auto margin = find_memory_margin(policy, snapshot, verdict);
  if (!margin) return std::nullopt;
  const auto distance = static_cast<double>(margin->seen->available - margin->level(*share));
  const std::chrono::duration<double> left{distance / static_cast<double>(policy.fastest_fill)};
  return std::max(std::chrono::duration_cast<Duration>(left), kFloor);
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
    held->retry = outcome.at + kLadderPause;
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
