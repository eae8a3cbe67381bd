// SPDX-License-Identifier: Apache-2.0
// Next check: when the node must be checked again; and the forecast.
//
// The next check is due when the headroom could be used up at the highest rate at which this
// machine can fill memory. The overshoot past a hard threshold is therefore at most fastest_fill ×
// (check_floor + the duration of a check).
#pragma once

#include <headroom/judge.h>
#include <headroom/units.h>

#include <optional>

namespace headroom::judge_eviction {

// Updates verdict.after.trends and the forecast in verdict.thresholds.
void forecast(const Policy& policy, const Snapshot& snapshot, const History& before,
              Verdict& verdict);

// How much memory can be taken until the nearest threshold that is not yet met; absent: there is
// none.
std::optional<Bytes> memory_left(const Policy& policy, const Verdict& verdict);

// When the stalls of pods are to be counted again, which takes a sweep; absent: not before the next
// one.
std::optional<Instant> next_pod_stalls(const Policy& policy, const Snapshot& snapshot,
                                       const Verdict& verdict);

// Sets verdict.next_check and next_check_guarded.
void plan_next_check(const Policy& policy, const Snapshot& snapshot, Verdict& verdict);

}  // namespace headroom::judge_eviction
