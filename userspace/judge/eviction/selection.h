// SPDX-License-Identifier: Apache-2.0
// Choose: rank the pods of this instant and pick who is evicted.
#pragma once

#include <headroom/judge.h>

namespace headroom::judge_eviction {

// Writes verdict.ranking, first to die first, and appends a decision for each who is chosen: the
// first, and as many after him as it takes until what they should give back together is `missing`
// (in the signal's unit). One whose death would be for nothing is passed over while there is
// another.
void choose(const Policy& policy, const Snapshot& snapshot, const Reason& reason,
            std::int64_t missing, Verdict& verdict);

// Who would be killed for want of memory, in this order: for one who must act without the judge. A
// pod that is taken in part is there twice: its part, then all that is left.
std::vector<Decision> rank_for_failsafe(Policy policy, const Snapshot& snapshot,
                                        const History& history, std::size_t most);

// What its end begins with: its pre-stop commands, SIGTERM, or SIGKILL where there is no grace.
Act first_act(const Pod& pod, Duration grace);

// The decision to evict this pod, whoever chose it, with the grace it is due.
Decision make_eviction(const Policy& policy, const Snapshot& snapshot, const PodReading& reading,
                       const Reason& reason);

// The kubelet chooses by disk usage up to a minute old. Here a choice waits, within reason, until
// whoever might be chosen has been measured since the threshold was crossed.
bool needs_disk_measurement(const Snapshot& snapshot, const Reason& reason, const History& history);

}  // namespace headroom::judge_eviction
