// SPDX-License-Identifier: Apache-2.0
// Victims: those already on their way out: the kill when grace is over, and the farewell.
#pragma once

#include <headroom/judge.h>

namespace headroom::judge_eviction {

// True when a victim still stands between us and the next choice.
bool awaiting(const History& history);

// Moves every victim of `before` along: a SIGTERM whose grace is over becomes a kKill decision, one
// who is gone or out of time becomes a farewell. Needs a snapshot with cgroups.
void attend(const Policy& policy, const Snapshot& snapshot, const History& before,
            Verdict& verdict);

// A hard threshold does not wait for the grace a soft one granted: the condemned go first. Returns
// how many were hastened.
std::size_t hasten(const Snapshot& snapshot, const Reason& reason, Verdict& verdict);

// How long a killed pod's memory may take to come back before we stop waiting for it.
Duration return_window(std::optional<Bytes> held);

}  // namespace headroom::judge_eviction
