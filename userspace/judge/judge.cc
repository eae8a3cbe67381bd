// SPDX-License-Identifier: Apache-2.0
// judge(): the round, in the kubelet's order (eviction_manager.go, synchronize), on one instant.
#include "judge/eviction/ladder.h"
#include "judge/eviction/next_check.h"
#include "judge/eviction/no_execute.h"
#include "judge/eviction/node_reclaim.h"
#include "judge/eviction/predicted_release.h"
#include "judge/eviction/rank/rank.h"
#include "judge/eviction/selection.h"
#include "judge/eviction/storage_limits.h"
#include "judge/eviction/threshold/swap_aware.h"
#include "judge/eviction/threshold/threshold.h"
#include "judge/eviction/victims.h"

#include <headroom/judge.h>

namespace headroom {
namespace {

using namespace judge_eviction;

void clear(Verdict& verdict) {
  verdict.needs_cgroups = false;
  verdict.decisions.clear();
  verdict.eviction_ends.clear();
  verdict.ranking.clear();
}

// Whether a victim that is gone by this sweep was counted in a sample from before it: what it gave
// back shows in the next sample.
bool has_new_eviction_end(const Verdict& verdict, Signal signal) {
  for (const EvictionEnd& eviction_end : verdict.eviction_ends)
    if (eviction_end.gone && condition_of(eviction_end.reason.signal) == condition_of(signal))
      return true;
  return false;
}

// What must be freed for this threshold beyond what the dying will give back; absent: nothing, or
// not before one of them is gone.
std::optional<std::int64_t> bytes_to_free(const Policy& policy, const Snapshot& snapshot,
                                          std::uint32_t threshold, const Verdict& verdict) {
  const Signal signal = policy.thresholds[threshold].signal;
  if (!is_sized(signal)) {
    if (has_pending_victim(verdict.after, signal)) return std::nullopt;
    return is_disk(signal) ? shortfall(policy, snapshot, verdict, threshold).value_or(0) : 0;
  }
  if (has_new_eviction_end(verdict, signal)) return std::nullopt;
  const auto missing = shortfall(policy, snapshot, verdict, threshold);
  // A threshold that waits for a victim is checked at the victim's limit too; without victims, the
  // threshold itself is met.
  if (missing && *missing <= 0 && has_pending_victim(verdict.after, signal)) return std::nullopt;
  return missing;
}

// Act on one threshold, unless those already dying for it will give back enough.
void decide_for_threshold(const Policy& policy, const Snapshot& snapshot, std::uint32_t threshold,
                          Verdict& verdict) {
  const Reason reason = reason_for(policy, snapshot, verdict, threshold);
  const bool eviction_helps = holds_pods(reason.signal, snapshot.images);
  if (eviction_helps && reason.hard && escalate_to_kill(snapshot, reason, verdict) > 0) return;
  const auto missing = bytes_to_free(policy, snapshot, threshold, verdict);
  if (!missing) return;
  if (try_node_reclaim(policy, snapshot, reason, verdict) || !eviction_helps) return;
  if (needs_disk_measurement(snapshot, reason, verdict.after)) return;
  const std::size_t decided = verdict.decisions.size();
  choose(policy, snapshot, reason, *missing, verdict);
  if (verdict.decisions.size() > decided) reset_reclaim(reason.signal, verdict.after);
}

// While a disk is short, the pods that fill it should be known at once.
bool is_disk_below_threshold(const Policy& policy, const Verdict& verdict) {
  for (const ThresholdReading& reading : verdict.thresholds)
    if (reading.below_since && is_disk(policy.thresholds[reading.index].signal)) return true;
  return false;
}

void judge_observations(const Policy& policy, const Snapshot& snapshot, const History& before,
                        Verdict& verdict) {
  clear(verdict);
  evaluate_thresholds(policy, snapshot, before, verdict);
  reset_recovered_reclaims(policy, verdict);
  verdict.measure_disks = is_disk_below_threshold(policy, verdict);
  forecast(policy, snapshot, before, verdict);
  if (!snapshot.cgroups) {
    verdict.needs_cgroups = threshold_to_act_on(policy, snapshot, before, verdict).has_value() ||
                            !before.victims.empty() || taint_timer_due(before, snapshot.at) ||
                            is_ladder_step_due(policy, snapshot, verdict);
    // Kept if no sweep succeeds: no victim is forgotten, and it is tried again.
    verdict.after.victims = before.victims;
    verdict.after.taint_timers = before.taint_timers;
    verdict.after.taints_checked_at = before.taints_checked_at;
    plan_next_check(policy, snapshot, verdict);
    return;
  }
  advance_victims(policy, snapshot, before, verdict);
  apply_taints(policy, snapshot, before, verdict);
  const auto threshold = threshold_to_act_on(policy, snapshot, before, verdict);
  if (!enforce_storage_limits(policy, snapshot, verdict) && threshold)
    decide_for_threshold(policy, snapshot, *threshold, verdict);
  if (!verdict.decisions.empty() || !verdict.eviction_ends.empty())
    restart_pressure_grace(policy, verdict);
  run_ladder(policy, snapshot, threshold.has_value() || !verdict.decisions.empty(), verdict);
  plan_next_check(policy, snapshot, verdict);
}

}  // namespace

void judge(const Policy& policy, const Snapshot& snapshot, const History& before,
           Verdict& verdict) {
  const auto& memory = of(snapshot.observations, Signal::kMemoryAvailable);
  if (!snapshot.swap || !memory) {
    verdict.swap_room.reset();
    verdict.after.swap = before.swap;
    return judge_observations(policy, snapshot, before, verdict);
  }
  verdict.after.swap = advance(before.swap, *snapshot.swap);
  verdict.swap_room = swap_room(*snapshot.swap, memory->available, verdict.after.swap);
  verdict.swap_room->in_force = policy.swap_aware;
  Snapshot with_swap = snapshot;
  if (policy.swap_aware)
    of(with_swap.observations, Signal::kMemoryAvailable)->available = verdict.swap_room->available;
  judge_observations(policy, with_swap, before, verdict);
  if (!verdict.decisions.empty() || !verdict.eviction_ends.empty())
    restart_thrashing(verdict.after.swap);
}

}  // namespace headroom
