// SPDX-License-Identifier: Apache-2.0
// Choose: rank the pods of this instant and pick who is evicted.
#pragma once

#include <headroom/judge.h>

namespace headroom::judge_eviction {

// Writes verdict.ranking, first to die first, and appends at most one decision.
void choose(const Policy& policy, const Snapshot& snapshot, const Reason& reason, Verdict& verdict);

// The decision to evict this pod, whoever chose it, with the grace it is due.
Decision eviction_of(const Policy& policy, const Snapshot& snapshot, const PodReading& reading,
                     const Reason& reason);

// Already on its way out.
bool dying(const History& history, CgroupId cgroup);

// The kubelet chooses by disk usage up to a minute old. Here a choice waits, within reason, until
// whoever might be chosen has been measured since the threshold was crossed.
bool awaits_measurement(const Snapshot& snapshot, const Reason& reason, const History& history);

}  // namespace headroom::judge_eviction
