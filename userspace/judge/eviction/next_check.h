// SPDX-License-Identifier: Apache-2.0
// Watch: when to look again, and the forecast.
//
// The watch is as fast as the danger: the next check falls due when the headroom could be gone at
// the fastest rate this machine can fill memory. Overshoot past a hard threshold is therefore
// bounded by fastest_fill × (check_floor + the time a check takes).
#pragma once

#include <headroom/judge.h>
#include <headroom/units.h>

#include <optional>

namespace headroom::judge_eviction {

// Updates verdict.after.trends and the forecast in verdict.thresholds.
void forecast(const Policy& policy, const Snapshot& snapshot, const History& before,
              Verdict& verdict);

// How much memory may be taken until a threshold not yet reached is; absent: none is ahead.
std::optional<Bytes> memory_left(const Policy& policy, const Verdict& verdict);

// Sets verdict.next_check and next_check_guarded.
void plan_next_check(const Policy& policy, const Snapshot& snapshot, Verdict& verdict);

}  // namespace headroom::judge_eviction
