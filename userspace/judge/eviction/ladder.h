// SPDX-License-Identifier: Apache-2.0
// Ladder: what is tried before a pod must go: take page cache, hold best-effort at what it uses,
// raise the limit of a container that waits at its own. Its steps are taken where nothing else is
// to be done at that turn, so none delays a kill.
//
// Page cache on the inactive list is available already, as the kubelet counts; what helps is the
// rest, which memory.reclaim ages on its way. So both lists count.
#pragma once

#include <headroom/judge.h>

#include <optional>

namespace headroom::judge_eviction {

// Appends the steps due at this sweep to verdict.decisions, and updates in verdict.after which pods
// it watches. With `busy`, something more urgent is done in this turn, so no step starts.
void run_ladder(const Policy& policy, const Snapshot& snapshot, bool busy, Verdict& verdict);

// The node alone was looked at, and a step may be due: a pass is wanted.
bool is_ladder_step_due(const Policy& policy, const Snapshot& snapshot, const Verdict& verdict);

// How long the ladder may go unwatched; absent: no bound of its own.
std::optional<Duration> time_to_ladder_step(const Policy& policy, const Snapshot& snapshot,
                                            const Verdict& verdict);

void record_ladder_outcome(const Outcome& outcome, LadderHistory& ladder);

}  // namespace headroom::judge_eviction
