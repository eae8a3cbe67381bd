// SPDX-License-Identifier: Apache-2.0
#include "judge/eviction/threshold/threshold.h"

#include "judge/eviction/rank/rank.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <system_error>
#include <tuple>

namespace headroom {
namespace {

std::int64_t truncate(double value) {
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  if (value <= -0x1p63) return -kMax;
  // NaN too (no capacity times an endless fraction): Go's answer is the machine's, ours is fixed.
  return value < 0x1p63 ? static_cast<std::int64_t>(value) : kMax;
}

Quantity amount(const ThresholdValue& value, std::int64_t capacity) {
  if (const auto* quantity = std::get_if<Quantity>(&value)) return *quantity;
  const double share = std::get<Fraction>(value).of_one;
  return Quantity::of(truncate(static_cast<double>(capacity) * share), Quantity::Format::kBinarySI);
}

// With what the reading may be too high by.
Quantity limit_for(const Threshold& threshold, const Observation& seen) {
  Quantity limit = amount(threshold.value, seen.capacity);
  limit += Quantity::of(seen.error);
  return limit;
}

}  // namespace
}  // namespace headroom

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
  reading.limit = limit_for(threshold, seen).value();
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
    // Where no pod is evicted for it, the condition is all that its grace can delay.
    if (condition == Condition::kCpuPressure && !reading.met) continue;
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

// Whether a pod may be evicted for cpu.pressure at this instant: that is asked for, and the last
// one is long enough ago.
bool may_evict_for_cpu(const Policy& policy, const History& history, Instant at) {
  if (!policy.cpu_eviction_period) return false;
  return !history.cpu_evicted_at || at - *history.cpu_evicted_at >= *policy.cpu_eviction_period;
}

// Lower acts first: memory first, then the signals that follow from a shortage of memory (swap,
// pressure); CPUs after everything that can run out, last the signals for which no pod can be
// evicted. Hard before soft: upstream takes
// either of a signal's two thresholds at random, so a soft grace may end up on a hard eviction.
std::tuple<int, bool> order(const Threshold& threshold, ImageStorage images) {
  const Signal signal = threshold.signal;
  const auto urgency = [&] {
    if (is_memory(signal)) return 0;
    if (condition_of(signal) == Condition::kMemoryPressure) return 1;
    if (signal == Signal::kCpuPressure) return 3;
    return holds_pods(signal, images) ? 2 : 4;
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
  verdict.after.cpu_evicted_at = before.cpu_evicted_at;
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
    if (threshold.signal == Signal::kCpuPressure &&
        !may_evict_for_cpu(policy, verdict.after, snapshot.at))
      continue;
    if (!best ||
        order(threshold, snapshot.images) < order(policy.thresholds[*best], snapshot.images))
      best = reading.index;
  }
  return best;
}

void restart_pressure_grace(const Policy& policy, Verdict& verdict) {
  for (std::size_t i = 0; i < policy.thresholds.size(); ++i) {
    const Signal signal = policy.thresholds[i].signal;
    const bool evicts = signal != Signal::kCpuPressure || policy.cpu_eviction_period;
    if (!is_share_of_time(signal) || !evicts) continue;
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

namespace headroom {
namespace {

std::string text_of(Signal signal) {
  return std::string(name(signal));
}

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Go lets an underscore stand between two digits. Anything else keeps it, and is refused.
std::string without_separators(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool separates = text[i] == '_' && i > 0 && i + 1 < text.size() &&
                           is_digit(text[i - 1]) && is_digit(text[i + 1]);
    if (!separates) plain.push_back(text[i]);
  }
  return plain;
}

// Go's strconv.ParseFloat(text, 32), decimal only, with its two errors.
Result<float> parse_float(std::string_view text) {
  const auto parse_error = [&](std::string_view why) {
    return failure("strconv.ParseFloat: parsing \"" + std::string(text) +
                   "\": " + std::string(why));
  };
  const std::string plain = without_separators(text);
  const char* begin = plain.c_str();
  const char* const end = begin + plain.size();
  if (plain.starts_with('+')) ++begin;
  if (begin != plain.c_str() && plain.substr(1).starts_with('-'))
    return parse_error("invalid syntax");

  float value = 0;
  const auto [stopped, error] = std::from_chars(begin, end, value);
  if (error == std::errc::invalid_argument || stopped != end) return parse_error("invalid syntax");
  // from_chars does not say which end of the range was missed. Too small is zero to Go.
  if (error == std::errc::result_out_of_range) value = std::strtof(begin, nullptr);
  if (error != std::errc{} && std::isinf(value)) return parse_error("value out of range");
  return value;
}

// The share of one that "10%" says; every trailing % is stripped, as the kubelet does. The division
// is in float32 because the kubelet's is: it decides which byte the threshold falls on.
Result<Fraction> parse_percentage(std::string_view text) {
  const auto last = text.find_last_not_of('%');
  const auto number = parse_float(text.substr(0, last == std::string_view::npos ? 0 : last + 1));
  if (!number) return tl::make_unexpected(number.error());
  return Fraction{*number / 100};
}

}  // namespace

Result<Signal> parse_signal(std::string_view text) {
  // Three have keys of their own: memory.pressure and cpu.pressure, which trip above their values
  // (headroom.pressure), and kernel.memAvailable, which is on by default
  // (headroom.kernelMemAvailable).
  if (const auto signal = signal_named(text);
      signal && !is_share_of_time(*signal) && *signal != Signal::kKernelMemAvailable)
    return *signal;
  return failure("unsupported eviction signal " + std::string(text));
}

Result<std::optional<ThresholdValue>> parse_threshold_value(Signal signal, std::string_view text) {
  if (text == "0%" || text == "100%") return std::nullopt;
  if (!text.ends_with('%')) {
    const auto quantity = Quantity::parse(text);
    if (!quantity) return tl::make_unexpected(quantity.error());
    if (quantity->sign() > 0) return ThresholdValue{*quantity};
    return failure("eviction threshold " + text_of(signal) +
                   " must be positive: " + quantity->canonical());
  }
  const auto fraction = parse_percentage(text);
  if (!fraction) return tl::make_unexpected(fraction.error());
  const auto must_be = [&](std::string_view what) {
    return failure("eviction percentage threshold " + text_of(signal) + " must be " +
                   std::string(what) + ": " + std::string(text));
  };
  // The kubelet accepts NaN%, and what it then does depends on the machine (kubelet:
  // eviction/helpers.go).
  if (std::isnan(fraction->of_one)) return must_be("a number");
  if (fraction->of_one < 0) return must_be(">= 0%");
  if (fraction->of_one > 1) return must_be("<= 100%");
  return ThresholdValue{*fraction};
}

Result<ThresholdValue> parse_min_reclaim(Signal signal, std::string_view text) {
  if (!text.ends_with('%')) {
    const auto quantity = Quantity::parse(text);
    if (!quantity) return tl::make_unexpected(quantity.error());
    if (quantity->sign() >= 0) return ThresholdValue{*quantity};
    return failure("negative eviction minimum reclaim specified for " + text_of(signal));
  }
  const auto fraction = parse_percentage(text);
  if (!fraction) return tl::make_unexpected(fraction.error());
  if (fraction->of_one > 0) return ThresholdValue{*fraction};  // NaN is not
  return failure("eviction percentage minimum reclaim " + text_of(signal) +
                 " must be positive: " + std::string(text));
}

std::int64_t resolve(const ThresholdValue& value, std::int64_t capacity) {
  return amount(value, capacity).value();
}

bool met(const Threshold& threshold, const Observation& observation, bool enforce_min_reclaim) {
  Quantity limit = limit_for(threshold, observation);
  if (enforce_min_reclaim && threshold.min_reclaim)
    limit += amount(*threshold.min_reclaim, observation.capacity);
  return limit > Quantity::of(observation.available);
}

}  // namespace headroom
