// SPDX-License-Identifier: Apache-2.0
#include "judge/limits/suppress_plan.h"

#include "judge/resources/pod_resources.h"

#include <algorithm>

namespace headroom::judge_limits {
namespace {

// Contention is low enough at this part of the threshold: pods that are released make it higher.
constexpr double kCalmPart = 0.5;

bool has_guarantee(const SuppressReading& pod) {
  return !pod.importance || pod.importance->burstable;
}

// The least important above `level` of which at least one runs: without that, nothing is gained.
std::optional<Importance> next_level(const std::optional<Importance>& level,
                                     std::span<const SuppressReading> pods) {
  std::optional<Importance> next;
  for (const SuppressReading& pod : pods)
    if (pod.importance && pod.runs && (!level || *pod.importance > *level) &&
        (!next || *pod.importance < *next))
      next = pod.importance;
  return next;
}

// The most important below `level`.
std::optional<Importance> level_below(const Importance& level,
                                      std::span<const SuppressReading> pods) {
  std::optional<Importance> below;
  for (const SuppressReading& pod : pods)
    if (pod.importance && *pod.importance < level && (!below || *pod.importance > *below))
      below = pod.importance;
  return below;
}

void suppress(const Importance& next, Instant at, SuppressHistory& history) {
  const bool returned = history.released_at && at - *history.released_at <= history.hold;
  if (returned)
    history.hold = std::min(2 * history.hold, kLongestHold);
  else if (!history.level)
    history.hold = kFirstHold;
  history.released_at.reset();
  history.level = next;
  history.changed_at = at;
  history.calm_since.reset();
}

void release(std::span<const SuppressReading> pods, Instant at, SuppressHistory& history) {
  history.level = level_below(*history.level, pods);
  history.changed_at = at;
  history.released_at = at;
  history.calm_since.reset();
}

// Whether contention was low for long enough. Unknown is no reason to suppress, and none to go on.
bool is_calm(const SuppressPolicy& policy, Instant at, std::span<const SuppressReading> pods,
             SuppressHistory& history) {
  const auto contention = contention_above(*history.level, pods);
  if (contention && *contention > kCalmPart * *policy.threshold) {
    history.calm_since.reset();
    return false;
  }
  if (!history.calm_since) history.calm_since = at;
  return at - *history.calm_since >= history.hold;
}

}  // namespace

std::optional<Importance> suppressible(const SuppressPolicy& policy, const PodReading& pod) {
  if (pod.critical || pod.description != PodDescription::kComplete) return std::nullopt;
  const Importance importance{.priority = pod.pod->priority,
                              .burstable = qos_class(*pod.pod) == QosClass::kBurstable};
  switch (qos_class(*pod.pod)) {
    case QosClass::kGuaranteed:
      return std::nullopt;
    case QosClass::kBestEffort:
      return importance;
    case QosClass::kBurstable:
      break;
  }
  const bool batch = policy.batch_priority && importance.priority <= *policy.batch_priority;
  return batch ? std::optional(importance) : std::nullopt;
}

std::optional<double> contention_above(const Importance& importance,
                                       std::span<const SuppressReading> pods) {
  std::optional<double> longest;
  bool any = false;
  for (const SuppressReading& pod : pods) {
    if (!has_guarantee(pod) || (pod.importance && *pod.importance <= importance)) continue;
    any = true;
    if (pod.waited) longest = std::max(longest.value_or(0), *pod.waited);
  }
  return any ? longest : std::optional(0.0);
}

void plan_suppress(const SuppressPolicy& policy, Instant at, std::span<const SuppressReading> pods,
                   SuppressHistory& history) {
  if (!policy.threshold) {
    history = {};
    return;
  }
  const bool settled = !history.level || at - history.changed_at >= kSuppressSettle;
  if (!settled) return;
  if (const auto next = next_level(history.level, pods)) {
    const auto contention = contention_above(*next, pods);
    if (contention && *contention > *policy.threshold) return suppress(*next, at, history);
  }
  if (history.level && is_calm(policy, at, pods, history)) release(pods, at, history);
}

}  // namespace headroom::judge_limits
