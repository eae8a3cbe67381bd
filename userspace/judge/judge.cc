// SPDX-License-Identifier: Apache-2.0
// judge(): the round, in the kubelet's order (eviction_manager.go, synchronize), on one instant.
#include "judge/admission/no_execute.h"
#include "judge/eviction/choose.h"
#include "judge/eviction/disk.h"
#include "judge/eviction/ladder.h"
#include "judge/eviction/limits.h"
#include "judge/eviction/reclaim.h"
#include "judge/eviction/release.h"
#include "judge/eviction/standing.h"
#include "judge/eviction/victims.h"
#include "judge/eviction/watch.h"

#include <headroom/judge.h>

namespace headroom {
namespace {

using namespace judge_eviction;

void clear(Verdict& verdict) {
  verdict.look_closer = false;
  verdict.decisions.clear();
  verdict.farewells.clear();
  verdict.ranking.clear();
}

// Whether somebody who is gone as of this pass was counted in a sample from before it: what he gave
// back shows in the next.
bool has_just_left(const Verdict& verdict, Signal signal) {
  for (const Farewell& farewell : verdict.farewells)
    if (farewell.gone && condition_of(farewell.reason.signal) == condition_of(signal)) return true;
  return false;
}

// What must be freed for this threshold beyond what the dying will give back; absent: nothing, or
// not before one of them is gone.
std::optional<std::int64_t> to_free(const Policy& policy, const Snapshot& snapshot,
                                    std::uint32_t threshold, const Verdict& verdict) {
  const Signal signal = policy.thresholds[threshold].signal;
  if (!is_sized(signal)) {
    if (awaiting(verdict.after, signal)) return std::nullopt;
    return is_disk(signal) ? shortfall(policy, snapshot, verdict, threshold).value_or(0) : 0;
  }
  if (has_just_left(verdict, signal)) return std::nullopt;
  const auto missing = shortfall(policy, snapshot, verdict, threshold);
  // Who waits for one to die does so at the limit too; with nobody dying, the limit itself is met.
  if (missing && *missing <= 0 && awaiting(verdict.after, signal)) return std::nullopt;
  return missing;
}

// Act on one threshold, unless those already dying for it will give back enough.
void act_on(const Policy& policy, const Snapshot& snapshot, std::uint32_t threshold,
            Verdict& verdict) {
  const Reason reason = reason_for(policy, snapshot, verdict, threshold);
  const bool helps = holds_pods(reason.signal, snapshot.images);
  if (helps && reason.hard && hasten(snapshot, reason, verdict) > 0) return;
  const auto missing = to_free(policy, snapshot, threshold, verdict);
  if (!missing) return;
  if (reclaim_first(policy, snapshot, reason, verdict) || !helps) return;
  if (awaits_measurement(snapshot, reason, verdict.after)) return;
  const std::size_t decided = verdict.decisions.size();
  choose(policy, snapshot, reason, *missing, verdict);
  if (verdict.decisions.size() > decided) forget_reclaim(reason.signal, verdict.after);
}

// While a disk is short, who fills it is worth knowing at once.
bool short_of_disk(const Policy& policy, const Verdict& verdict) {
  for (const ThresholdStanding& standing : verdict.thresholds)
    if (standing.below_since && is_disk(policy.thresholds[standing.index].signal)) return true;
  return false;
}

}  // namespace

void judge(const Policy& policy, const Snapshot& snapshot, const History& before,
           Verdict& verdict) {
  clear(verdict);
  stand(policy, snapshot, before, verdict);
  forget_reclaims_of_the_recovered(policy, verdict);
  verdict.measure_disks = short_of_disk(policy, verdict);
  forecast(policy, snapshot, before, verdict);
  if (!snapshot.cgroups) {
    verdict.look_closer = threshold_to_act_on(policy, snapshot, before, verdict).has_value() ||
                          !before.victims.empty() || taint_timer_due(before, snapshot.at) ||
                          wants_step(policy, snapshot, verdict);
    // Stands if no closer look can be had: nobody is forgotten, and it is tried again.
    verdict.after.victims = before.victims;
    verdict.after.taint_timers = before.taint_timers;
    verdict.after.taints_heeded = before.taints_heeded;
    plan_next_check(policy, snapshot, verdict);
    return;
  }
  attend(policy, snapshot, before, verdict);
  heed_taints(policy, snapshot, before, verdict);
  const auto threshold = threshold_to_act_on(policy, snapshot, before, verdict);
  if (!enforce_limits(policy, snapshot, verdict) && threshold)
    act_on(policy, snapshot, *threshold, verdict);
  if (!verdict.decisions.empty() || !verdict.farewells.empty())
    begin_pressure_again(policy, verdict);
  climb(policy, snapshot, threshold.has_value() || !verdict.decisions.empty(), verdict);
  plan_next_check(policy, snapshot, verdict);
}

}  // namespace headroom
