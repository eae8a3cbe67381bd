// SPDX-License-Identifier: Apache-2.0
// Predicts what a kill will give back, so that no more pods are killed than needed.
//
// Shortages of memory, swap and tasks are sized: as many pods go as it takes. For pressure and for
// a disk one pod goes at a time, as under the kubelet: disk usage is measured only now and then,
// and a writer holds more by now.
#pragma once

#include "judge/eviction/rank/rank.h"

#include <headroom/judge.h>

#include <cstdint>
#include <optional>

namespace headroom::judge_eviction {

bool is_sized(Signal signal);

// In the unit that the signal ranks by; absent: unknown, or not predicted. Memory: what only its
// processes hold (anonymous and shared memory, page tables, stacks). Page cache stays when its
// reader exits; a tmpfs that others use stays too, which cannot be predicted: it shows when the
// victim is gone and the signal is no better. For kernel.memAvailable all that the pod is charged
// but page cache and reclaimable slab. Where swap counts, also what it has there. Swap and tasks:
// what the cgroup holds. Disk: all that the ranking counts, which is the most that can come back.
std::optional<std::int64_t> predicted_release(Signal signal, const PodReading& reading,
                                              ImageStorage images = {},
                                              SwapUse swap_use = SwapUse::kIgnored);

// Of that, what no kill has freed yet: a victim that was killed and lives on gives back only what
// it has grown by since, until its back-off is over.
std::int64_t retained_after_kill(const History& history, const PodReading& reading, Signal signal,
                                 Instant at);

// From the kill to the last page: 75 to 82 ms/GiB of 4 KiB pages, 3 to 4 of huge ones (measured),
// and the exit itself.
Duration predicted_time(const PodReading& reading);
// Of so much in small pages.
Duration predicted_time(Bytes held);

// Memory and swap of the cgroup that the victim, or its process, is in; absent: unknown.
std::optional<Bytes> current_held(const Victim& victim, const PodReading* reading);

// Moves the least that a killed victim has held since its kill on to this pass.
void update_least_held(Victim& victim, const PodReading* reading, SwapUse swap_use);

// Moves Victim::due of a victim without processes on to this pass: by the tasks that its cgroup
// still counts, or by the memory of processes that it still holds; or, the cgroup gone as well, by
// what the signal has risen, taken from `risen`. Returns true if something came back.
bool update_returned(Victim& victim, const PodReading* reading, SwapUse swap_use,
                     std::int64_t& risen);

// Of a victim whose cgroup is removed: all that is due are page tables, and what the node has of
// them is known.
bool waits_for_page_tables(const Victim& victim, const Snapshot& snapshot);

// Moves Victim::due of a victim whose cgroup is removed on to this pass, by what the node still has
// of its page tables: once the rest is back, or should be (Victim::sigterm_due). Returns true if
// that is less than before.
bool follow_page_tables(Victim& victim, const Snapshot& snapshot);

// Moves Victim::due on to this pass. `reading` may be null.
void update_expected_release(Victim& victim, const PodReading* reading, SwapUse swap_use);

// A victim that is still exiting, that is, gives memory back or takes CPU time, is waited for: its
// deadline moves to a second after the latest sweep that saw it, or could not tell, but not beyond
// half a minute after the kill. So on a slow machine no victim is taken for stuck. `reading` may be
// null.
void extend_deadline_while_exiting(Victim& victim, const PodReading* reading, Instant at);

// What is still missing once all victims have given back what they hold: zero or less if that is
// enough, absent if unknown (then they are waited for). `threshold` is an index into the policy's
// thresholds, one that is crossed.
std::optional<std::int64_t> shortfall(const Policy& policy, const Snapshot& snapshot,
                                      const Verdict& verdict, std::uint32_t threshold);

}  // namespace headroom::judge_eviction
