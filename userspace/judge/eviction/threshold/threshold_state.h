// SPDX-License-Identifier: Apache-2.0
// Evaluates every threshold against the current readings, with the state that the kubelet keeps.
//
// Steps 5 to 14 of the kubelet's synchronize() (pkg/kubelet/eviction/eviction_manager.go, v1.32):
// met with and without minimum reclaim, first observed, conditions with their transition period,
// grace, and fresh samples only.
#pragma once

#include <headroom/judge.h>

#include <optional>

namespace headroom::judge_eviction {

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
// the grace of memory.pressure starts again. The other signals are not measured over a period.
void restart_pressure_grace(const Policy& policy, Verdict& verdict);

}  // namespace headroom::judge_eviction
