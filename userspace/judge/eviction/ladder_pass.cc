// SPDX-License-Identifier: Apache-2.0
#include "judge/eviction/ladder_pass.h"

#include "judge/eviction/selection.h"
#include "judge/eviction/victims.h"

#include <algorithm>

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

}  // namespace headroom::judge_eviction
