// SPDX-License-Identifier: Apache-2.0
// Selection: ranks the pods of this snapshot and picks the ones to evict.
#pragma once

#include <headroom/judge.h>

namespace headroom::judge_eviction {

// Writes verdict.ranking, first to be evicted first, and appends a decision for each pod chosen:
// the first, and as many more as it takes until together they give back `missing` (in the signal's
// unit). A pod whose death would not help is skipped while there is another.
void choose(const Policy& policy, const Snapshot& snapshot, const Reason& reason,
            std::int64_t missing, Verdict& verdict);

// The pods that would be killed for memory, in this order: for the sentinel, which acts without the
// judge. A pod that is evicted in parts is listed twice: its part, then all that is left.
std::vector<Decision> rank_for_failsafe(Policy policy, const Snapshot& snapshot,
                                        const History& history, std::size_t most);

// What its end begins with: its pre-stop commands, SIGTERM, or SIGKILL where there is no grace.
Act first_act(const Pod& pod, Duration grace);

// The decision to evict this pod, for whatever reason it was chosen, with the grace it is due.
Decision make_eviction(const Policy& policy, const Snapshot& snapshot, const PodReading& reading,
                       const Reason& reason);

// The kubelet chooses by disk usage up to a minute old. Here the choice waits, within limits, until
// every pod that might be chosen was measured after the threshold was crossed.
bool needs_disk_measurement(const Snapshot& snapshot, const Reason& reason, const History& history);

}  // namespace headroom::judge_eviction
