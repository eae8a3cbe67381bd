// SPDX-License-Identifier: Apache-2.0
// Victims: the evictions in progress: the kill when the grace is over, and the end.
#pragma once

#include <headroom/judge.h>

namespace headroom::judge_eviction {

// The victim is exiting, and what it gives back is still to come.
bool is_awaited(const Victim& victim, Signal signal);

// It was killed, and of what it held something may still come back.
bool gives_back(const Victim& victim);

// Killed, and yet a process lives in its cgroup that came after the kill: the cgroup holds clearly
// more than the least it has held since, and what SIGKILL has reached does not grow. `reading` may
// be null.
bool has_new_process_after_kill(const Victim& victim, const PodReading* reading);

// The pod of this reading is not to be chosen: it is on its way out, all of it. A victim that was
// killed is a candidate again once it lives again, and once it is spent and its back-off
// (Victim::sigterm_due) is over.
bool is_excluded(const History& history, const PodReading& reading, Instant at);

// A kill that was carried out: when its pod may be chosen again if the cgroup never empties. A
// minute after the first, and twice as long after each further one, up to five minutes.
Instant eligible_again_at(const Victim& before, Instant killed_at);

// True when a victim still stands between us and the next choice for this signal.
bool has_pending_victim(const History& history, Signal signal);

// Advances every victim of `before`: a SIGTERM whose grace is over becomes a kKill decision; one
// that is gone or out of time becomes an EvictionEnd. Needs a snapshot with cgroups.
void advance_victims(const Policy& policy, const Snapshot& snapshot, const History& before,
                     Verdict& verdict);

// A hard threshold does not wait for the grace that a soft one granted: pods already being evicted
// are killed first. Returns how many. (A pod that is killed for a disk frees memory too; the
// reverse does not hold.)
std::size_t escalate_to_kill(const Snapshot& snapshot, const Reason& reason, Verdict& verdict);

// Of a grace with pre-stop commands, how much is kept for SIGTERM after them: the kubelet's two
// seconds, of a short grace half.
Duration sigterm_reserve(Duration grace);

// How long a killed pod may take to give back what it holds before it is no longer waited for: by
// its size for memory; the kubelet's half minute otherwise, because a process that writes to a full
// disk exits when the disk lets it.
Duration return_window(Signal signal, std::optional<Bytes> held);

}  // namespace headroom::judge_eviction
