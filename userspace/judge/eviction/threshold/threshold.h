// SPDX-License-Identifier: Apache-2.0
// One eviction threshold: reading its value, resolving it against capacity, comparing.
#pragma once

#include <headroom/policy.h>
#include <headroom/result.h>
#include <headroom/signal.h>
#include <headroom/snapshot.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace headroom {

// "unsupported eviction signal X", as the kubelet says it.
Result<Signal> parse_signal(std::string_view text);

// The value of evictionHard and evictionSoft (kubelet: eviction/helpers.go), in the kubelet's
// words. Nothing: exactly "0%" and "100%", the documented way to turn one signal off.
Result<std::optional<ThresholdValue>> parse_threshold_value(Signal signal, std::string_view text);

// The value of evictionMinimumReclaim: a percentage must be positive, a quantity not negative.
Result<ThresholdValue> parse_min_reclaim(Signal signal, std::string_view text);

// In the signal's unit. A percentage is truncated, a fractional quantity rounded up (which changes
// no comparison with an integer), both saturated.
std::int64_t resolve(const ThresholdValue& value, std::int64_t capacity);

// available < threshold; equal is not met. Enforcing the minimum reclaim adds it to the threshold:
// the hysteresis of one that was met before.
bool met(const Threshold& threshold, const Observation& observation, bool enforce_min_reclaim);

}  // namespace headroom
