// SPDX-License-Identifier: Apache-2.0
// Reclaim: what the node can free by itself before a pod must go (kubelet: eviction).
//
// Success is judged by the signal's own thresholds on a sample taken afterwards. (The kubelet looks
// at every threshold there is, so that a soft one of memory makes the reclaim of disk "fail".)
#pragma once

#include <headroom/judge.h>

namespace headroom::judge_eviction {

// What was freed shows in statfs() so much later, at the latest.
inline constexpr Duration kDiskSettle = std::chrono::seconds(1);

// True: no pod is to go in this round, because reclaim was decided on or is under way.
bool try_node_reclaim(const Policy& policy, const Snapshot& snapshot, const Reason& reason,
                      Verdict& verdict);

// After a pod was chosen, and once a signal has recovered: reclaim comes first again.
void reset_reclaim(Signal signal, History& history);
void reset_recovered_reclaims(const Policy& policy, Verdict& verdict);

bool is_reclaim_running(const History& history);

}  // namespace headroom::judge_eviction
