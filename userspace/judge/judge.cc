// SPDX-License-Identifier: Apache-2.0
// judge(): the round, in the kubelet's order (eviction_manager.go, synchronize), on one instant.
#include "judge/admission/no_execute.h"
#include "judge/eviction/choose.h"
#include "judge/eviction/disk.h"
#include "judge/eviction/limits.h"
#include "judge/eviction/reclaim.h"
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

// Act on one threshold, unless somebody already dying for it has yet to give his memory back.
void act_on(const Policy& policy, const Snapshot& snapshot, std::uint32_t threshold,
            Verdict& verdict) {
  const Reason reason = reason_for(policy, snapshot, verdict, threshold);
  if (reason.hard && hasten(snapshot, reason, verdict) > 0) return;
  if (awaiting(verdict.after, reason.signal)) return;
  if (reclaim_first(policy, snapshot, reason, verdict)) return;
  if (awaits_measurement(snapshot, reason, verdict.after)) return;
  const std::size_t decided = verdict.decisions.size();
  choose(policy, snapshot, reason, verdict);
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
                          !before.victims.empty() || taint_timer_due(before, snapshot.at);
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
  plan_next_check(policy, snapshot, verdict);
}

}  // namespace headroom
