// SPDX-License-Identifier: Apache-2.0
// One eviction threshold: reading its value, resolving it against capacity, comparing.
#pragma once

#include <headroom/judge.h>
#include <headroom/policy.h>
#include <headroom/result.h>
#include <headroom/signal.h>
#include <headroom/snapshot.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace headroom::judge_eviction {

// Evaluates every threshold against the current readings, with the state that the kubelet keeps.
//
// Steps 5 to 14 of the kubelet's synchronize() (pkg/kubelet/eviction/eviction_manager.go, v1.32):
// met with and without minimum reclaim, first observed, conditions with their transition period,
// grace, and fresh samples only.

// Fills verdict.thresholds, verdict.conditions and what verdict.after remembers of them.
void evaluate_thresholds(const Policy& policy, const Snapshot& snapshot, const History& before,
                         Verdict& verdict);

// The one threshold to act on: past its grace, on a sample not judged before; of memory first, hard
// before soft. Absent: nothing to do.
std::optional<std::uint32_t> threshold_to_act_on(const Policy& policy, const Snapshot& snapshot,
                                                 const History& before, const Verdict& verdict);

// Why that threshold calls for an eviction.
Reason reason_for(const Policy& policy, const Snapshot& snapshot, const Verdict& verdict,
                  std::uint32_t index);

// A pod was evicted, or is gone: the waits before that say nothing about the node as it is now, so
// the grace of memory.pressure, and of cpu.pressure if pods are evicted for it, starts again. The
// other signals are not measured over a period.
void restart_pressure_grace(const Policy& policy, Verdict& verdict);

}  // namespace headroom::judge_eviction

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

// available < threshold + error; equal is not met. Enforcing the minimum reclaim adds it to the
// threshold: the hysteresis of one that was met before.
bool met(const Threshold& threshold, const Observation& observation, bool enforce_min_reclaim);

}  // namespace headroom
