// SPDX-License-Identifier: Apache-2.0
#include "judge/eviction/threshold/threshold_state.h"

#include "judge/eviction/rank/disk_signals.h"
#include "judge/eviction/threshold/threshold.h"

#include <tuple>

namespace headroom::judge_eviction {
namespace {

// A missing reading neither trips nor clears: the threshold keeps the clock it had.
void keep_previous(const ThresholdHistory& was, ThresholdHistory& now, ThresholdReading& reading) {
  now = was;
  reading.below_since = was.first_observed;
}

void evaluate_threshold(const Threshold& threshold, const Observation& seen, Instant at,
                        const ThresholdHistory& was, ThresholdHistory& now,
                        ThresholdReading& reading) {
  reading.limit = resolve(threshold.value, seen.capacity);
  reading.available = seen.available;
  const bool below = met(threshold, seen, /*enforce_min_reclaim=*/false) ||
                     (was.met && met(threshold, seen, /*enforce_min_reclaim=*/true));
  now = was;
  if (!below) {
    now.first_observed.reset();
    now.met = false;
    now.last_clear = seen.at;
    return;
  }
  if (!now.first_observed) now.first_observed = at;
  now.met = at - *now.first_observed >= threshold.grace;
  reading.below_since = now.first_observed;
  reading.met = now.met;
}

void evaluate_conditions(const Policy& policy, Instant at, Verdict& verdict) {
  for (const ThresholdReading& reading : verdict.thresholds) {
    // Grace does not count here: a soft threshold raises its condition at once. Neither does a
    // clock kept over a missing reading.
    if (!reading.below_since || !reading.available) continue;
    const Condition condition = condition_of(policy.thresholds[reading.index].signal);
    verdict.after.last_pressure[static_cast<std::size_t>(condition)] = at;
  }
  for (std::size_t i = 0; i < kConditions; ++i) {
    const auto& last = verdict.after.last_pressure[i];
    verdict.conditions[i] = last && at - *last < policy.pressure_transition;
  }
}

// Newer than what was judged before, and than what was freed before.
bool is_new_sample(Signal signal, const Observation& seen, const History& before,
                   const History& now) {
  const auto& last = before.last_sample[static_cast<std::size_t>(signal)];
  if (is_disk(signal) && seen.at <= now.disk_settles_at) return false;
  return !last || seen.at > *last;
}

// Lower acts first: memory first, then the signals that follow from a shortage of memory (swap,
// pressure); last the signals for which no pod can be evicted. Hard before soft: upstream takes
// either of a signal's two thresholds at random, so a soft grace may end up on a hard eviction.
std::tuple<int, bool> order(const Threshold& threshold, ImageStorage images) {
  const Signal signal = threshold.signal;
  const auto urgency = [&] {
    if (is_memory(signal)) return 0;
    if (condition_of(signal) == Condition::kMemoryPressure) return 1;
    return holds_pods(signal, images) ? 2 : 3;
  };
  return {urgency(), !threshold.hard()};
}

}  // namespace

void evaluate_thresholds(const Policy& policy, const Snapshot& snapshot, const History& before,
                         Verdict& verdict) {
  const std::size_t count = policy.thresholds.size();
  verdict.thresholds.resize(count);
  verdict.after.thresholds.resize(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const Threshold& threshold = policy.thresholds[i];
    const ThresholdHistory was =
        i < before.thresholds.size() ? before.thresholds[i] : ThresholdHistory{};
    ThresholdReading& reading = verdict.thresholds[i];
    reading = ThresholdReading{};
    reading.index = i;
    if (const auto& seen = of(snapshot.observations, threshold.signal))
      evaluate_threshold(threshold, *seen, snapshot.at, was, verdict.after.thresholds[i], reading);
    else
      keep_previous(was, verdict.after.thresholds[i], reading);
  }
  verdict.after.last_pressure = before.last_pressure;
  verdict.after.reclaims = before.reclaims;
  verdict.after.disk_settles_at = before.disk_settles_at;
  verdict.after.partial_evictions = before.partial_evictions;
  verdict.after.ladder = before.ladder;
  evaluate_conditions(policy, snapshot.at, verdict);

  for (std::size_t i = 0; i < kSignals; ++i) {
    const auto& seen = snapshot.observations[i];
    verdict.after.last_sample[i] = seen ? std::optional(seen->at) : before.last_sample[i];
  }
}

std::optional<std::uint32_t> threshold_to_act_on(const Policy& policy, const Snapshot& snapshot,
                                                 const History& before, const Verdict& verdict) {
  std::optional<std::uint32_t> best;
  for (const ThresholdReading& reading : verdict.thresholds) {
    const Threshold& threshold = policy.thresholds[reading.index];
    const auto& seen = of(snapshot.observations, threshold.signal);
    if (!reading.met || !seen || !is_new_sample(threshold.signal, *seen, before, verdict.after))
      continue;
    if (!best ||
        order(threshold, snapshot.images) < order(policy.thresholds[*best], snapshot.images))
      best = reading.index;
  }
  return best;
}

void restart_pressure_grace(const Policy& policy, Verdict& verdict) {
  for (std::size_t i = 0; i < policy.thresholds.size(); ++i) {
    if (policy.thresholds[i].signal != Signal::kMemoryPressure) continue;
    verdict.after.thresholds[i].first_observed.reset();
    verdict.after.thresholds[i].met = false;
  }
}

Reason reason_for(const Policy& policy, const Snapshot& snapshot, const Verdict& verdict,
                  std::uint32_t index) {
  const Threshold& threshold = policy.thresholds[index];
  const ThresholdReading& reading = verdict.thresholds[index];
  const ThresholdHistory& memory = verdict.after.thresholds[index];
  const Observation& seen = *of(snapshot.observations, threshold.signal);
  return Reason{
      .signal = threshold.signal,
      .hard = threshold.hard(),
      .threshold = *reading.limit,
      .available = seen.available,
      .capacity = seen.capacity,
      .sampled_at = seen.at,
      .first_crossed = *memory.first_observed,
      .last_clear = memory.last_clear,
  };
}

}  // namespace headroom::judge_eviction
