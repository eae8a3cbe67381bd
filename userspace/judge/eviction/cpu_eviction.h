// SPDX-License-Identifier: Apache-2.0
// Eviction for cpu.pressure, if it is asked for (headroom.pressure.cpu.evict): one pod, at most
// once in a period, and only a pod whose use of CPUs above its request explains that others wait.
#pragma once

#include <headroom/judge.h>
#include <headroom/snapshot.h>

#include <cstdint>
#include <vector>

namespace headroom::judge_eviction {

// Usage and request in thousandths of a CPU; the predicted release in the signal's unit, millionths
// of the time. Without a reading of the last window, usage and release are unknown.
void set_cpu_use(const Snapshot& snapshot, const PodReading& pod, Candidate& candidate);

// Marks the candidates whose end would change nothing. They are within their requests; or what they
// are predicted to give back is less than an eighth of what is missing, or than half of it if all
// candidates together do not explain it.
void mark_futile_for_cpu(std::vector<Candidate>& ranking, std::int64_t missing);

// The first of the ranking that explains the waits, and of which the description is known; null:
// none does.
Candidate* choose_for_cpu(std::vector<Candidate>& ranking);

}  // namespace headroom::judge_eviction
