// SPDX-License-Identifier: Apache-2.0
// judge(): the round, in the kubelet's order (eviction_manager.go, synchronize), on one instant.
#include "judge/admission/no_execute.h"
#include "judge/eviction/choose.h"
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
  if (awaiting(verdict.after)) return;
  choose(policy, snapshot, reason, verdict);
}

}  // namespace

void judge(const Policy& policy, const Snapshot& snapshot, const History& before,
           Verdict& verdict) {
  clear(verdict);
  stand(policy, snapshot, before, verdict);
  forecast(policy, snapshot, before, verdict);
  const auto threshold = threshold_to_act_on(policy, snapshot, before, verdict);
  if (!snapshot.cgroups) {
    verdict.look_closer =
        threshold.has_value() || !before.victims.empty() || taint_timer_due(before, snapshot.at);
    // Stands if no closer look can be had: nobody is forgotten, and it is tried again.
    verdict.after.victims = before.victims;
    verdict.after.taint_timers = before.taint_timers;
    verdict.after.taints_heeded = before.taints_heeded;
    plan_next_check(policy, snapshot, verdict);
    return;
  }
  attend(policy, snapshot, before, verdict);
  heed_taints(policy, snapshot, before, verdict);
  if (threshold) act_on(policy, snapshot, *threshold, verdict);
  plan_next_check(policy, snapshot, verdict);
}

}  // namespace headroom
