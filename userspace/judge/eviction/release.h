// SPDX-License-Identifier: Apache-2.0
// Release: what a death gives back, so that as many die as will do and no more.
//
// Shortages of memory and of tasks alone are sized; for swap, pressure or a disk one goes at a
// time, as under the kubelet.
#pragma once

#include <headroom/judge.h>

#include <cstdint>
#include <optional>

namespace headroom::judge_eviction {

bool is_sized(Signal signal);

// Of what the signal ranks by; absent: unknown, or not foretold. Of memory: what processes alone
// hold (anonymous and shared memory, page tables, stacks). Page cache stays when its reader dies; a
// tmpfs that others see too stays as well, which nobody can tell beforehand: it is noticed when the
// victim is gone and the signal no better.
std::optional<std::int64_t> predicted_release(Signal signal, const PodReading& reading);

// From the kill to the last page: 75 to 82 ms/GiB of 4 KiB pages, 3 to 4 of huge ones (measured),
// and the exit itself.
Duration predicted_time(const PodReading& reading);
// Of so much in small pages.
Duration predicted_time(Bytes held);

// Moves Victim::due on to this pass. `reading` may be null.
void note_what_is_due(Victim& victim, const PodReading* reading);

// Who gets on with dying, that is gives memory back or takes CPU time, is waited for: his deadline
// is moved on to a second after the latest pass that saw it, or could not tell, but not beyond half
// a minute after the kill. So a machine that is slow takes nobody for stuck. `reading` may be null.
void wait_while_it_dies(Victim& victim, const PodReading* reading, Instant at);

// What is still missing once all who are dying have given back what they hold: at most zero if
// that is enough, absent if nobody can say (then they are waited for). `threshold` is an index into
// the policy's, known to be below its limit.
std::optional<std::int64_t> shortfall(const Policy& policy, const Snapshot& snapshot,
                                      const Verdict& verdict, std::uint32_t threshold);

}  // namespace headroom::judge_eviction
