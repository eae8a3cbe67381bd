// SPDX-License-Identifier: Apache-2.0
#include "judge/eviction/node_reclaim.h"

#include "judge/eviction/rank/rank.h"

#include <algorithm>

namespace headroom::judge_eviction {
namespace {

// How often reclaim is tried again if no pod can be evicted.
constexpr Duration kReclaimRetryPeriod = std::chrono::seconds(60);

Reclaim& reclaim_of(History& history, Signal signal) {
  return history.reclaims[static_cast<std::size_t>(signal)];
}

ReclaimSteps steps_for(const Policy& policy, const Snapshot& snapshot, Signal signal) {
  ReclaimSteps steps = reclaim_steps(signal, snapshot.images);
  steps.containers = steps.containers && policy.can_reclaim_containers;
  steps.images = steps.images && policy.can_reclaim_images;
  return steps;
}

Decision make_reclaim(const Policy& policy, const Snapshot& snapshot, const Reason& reason,
                      ReclaimSteps steps) {
  return Decision{.act = Act::kReclaim,
                  .pod = nullptr,
                  .cgroup = {},
                  .reason = reason,
                  .rank_info = {},
                  .steps = steps,
                  .decided_at = snapshot.at,
                  .deadline = snapshot.at + policy.reclaim_timeout};
}

}  // namespace

bool try_node_reclaim(const Policy& policy, const Snapshot& snapshot, const Reason& reason,
                      Verdict& verdict) {
  const ReclaimSteps steps = steps_for(policy, snapshot, reason.signal);
  if (!steps.any()) return false;
  Reclaim& reclaim = reclaim_of(verdict.after, reason.signal);
  if (reclaim.ended != Instant{} && snapshot.at - reclaim.ended >= kReclaimRetryPeriod)
    reclaim = {};
  if (reclaim.begun == Instant{}) {
    verdict.decisions.push_back(make_reclaim(policy, snapshot, reason, steps));
    return true;
  }
  if (reclaim.ended != Instant{}) return false;
  // The actuator stops it in time; this is for a step whose end was never reported.
  if (snapshot.at >= reclaim.deadline + kDiskSettle) reclaim.ended = snapshot.at;
  return true;
}

void reset_reclaim(Signal signal, History& history) {
  reclaim_of(history, signal) = {};
}

void reset_recovered_reclaims(const Policy& policy, Verdict& verdict) {
  for (std::size_t i = 0; i < kSignals; ++i) {
    if (verdict.after.reclaims[i].ended == Instant{}) continue;  // none, or still running
    const bool below = std::any_of(verdict.thresholds.begin(), verdict.thresholds.end(),
                                   [&](const ThresholdReading& rank_info) {
                                     const Threshold& each = policy.thresholds[rank_info.index];
                                     return each.signal == static_cast<Signal>(i) &&
                                            rank_info.below_since.has_value();
                                   });
    if (!below) verdict.after.reclaims[i] = {};
  }
}

bool is_reclaim_running(const History& history) {
  return std::any_of(history.reclaims.begin(), history.reclaims.end(), [](const Reclaim& each) {
    return each.begun != Instant{} && each.ended == Instant{};
  });
}

}  // namespace headroom::judge_eviction
