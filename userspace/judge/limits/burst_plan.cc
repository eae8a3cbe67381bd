// SPDX-License-Identifier: Apache-2.0
#include "judge/limits/burst_plan.h"

#include <algorithm>
#include <cmath>

namespace headroom::judge_limits {
namespace {

// A pod that is granted something had idle CPUs for so long.
constexpr Duration kCalm = std::chrono::seconds(1);
// The CPUs are calm if they are busy for this much less than where they are contended: what was
// granted makes them busier.
constexpr double kMargin = 0.1;
// A grant that is not needed for so long ends, so that another pod can have it.
constexpr Duration kUnneeded = std::chrono::seconds(60);
// A pod is throttled at the end of a period: it counts as in need of a grant for so long.
constexpr Duration kNeeded = std::chrono::seconds(2);
// At such a mean use nothing of the quota is left to be saved, so a grant changes nothing.
constexpr double kFull = 0.95;
// Less than this part of its quota is not worth a write.
constexpr double kLeastPart = 0.1;

void record_use(const BurstReading& reading, BurstHistory& history) {
  if (!reading.used) return;
  if (!history.used || !history.used_at) {
    history.used = reading.used;
  } else {
    const double kept = std::exp(-seconds_of(reading.at - *history.used_at) / seconds_of(kMeanUse));
    history.used = *history.used * kept + *reading.used * (1 - kept);
  }
  history.used_at = reading.at;
}

void record_busy(const BurstPolicy& policy, const BurstReading& reading, BurstHistory& history) {
  // Unknown is no reason to act, and none to keep a grant.
  const bool contended = !reading.busy || *reading.busy > policy.contended;
  history.contended = contended ? history.contended + 1 : 0;
  const bool calm = reading.busy && *reading.busy <= policy.contended - kMargin;
  if (!calm)
    history.calm_since.reset();
  else if (!history.calm_since)
    history.calm_since = reading.at;
}

bool saves_quota(const BurstReading& reading, const BurstHistory& history) {
  return history.used && reading.quota > 0 && *history.used < kFull * reading.quota;
}

}  // namespace

BurstPlan plan_burst(const BurstPolicy& policy, const BurstReading& reading, double room,
                     BurstHistory& history) {
  record_use(reading, history);
  record_busy(policy, reading, history);
  if (reading.throttled || reading.bursting) history.needed_at = reading.at;
  const Duration unneeded = reading.at - history.needed_at;
  if (history.granted > 0) {
    const bool ends = !policy.budget || room < 0 || history.contended >= kContendedReadings ||
                      unneeded > kUnneeded || !saves_quota(reading, history);
    return {.step = ends ? BurstStep::kWithdraw : BurstStep::kKeep, .cpus = 0};
  }
  const bool calm = history.calm_since && reading.at - *history.calm_since >= kCalm;
  if (!policy.budget || !calm || unneeded > kNeeded || !saves_quota(reading, history)) return {};
  const double cpus = std::min(reading.quota, room);
  if (cpus < kLeastPart * reading.quota) return {};
  return {.step = BurstStep::kGrant, .cpus = cpus};
}

}  // namespace headroom::judge_limits
