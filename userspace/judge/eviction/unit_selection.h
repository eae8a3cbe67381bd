// SPDX-License-Identifier: Apache-2.0
// Part: what of a chosen pod is killed: all of it, its worst container, or its largest process.
//
// A part goes only where it is enough. Where it is not, or a part of the same pod has gone for the
// same crossing and that did not help, the whole pod goes: the blame is still its own, and the next
// pod in the ranking need not pay for it.
#pragma once

#include <headroom/judge.h>

#include <cstdint>
#include <optional>

namespace headroom::judge_eviction {

// What is taken, and what comes of it.
struct EvictionScope {
  Part part;
  std::optional<std::int64_t> release;  // bytes; absent: unknown
  std::optional<Bytes> held;            // working set; of a process, its pod's
  Bytes request;                        // what `held` is compared with
};

// `missing` as in choose(). Parts are evicted for memory only: killing a process does not empty a
// disk, and a fork bomb has no largest process.
EvictionScope choose_scope(const Policy& policy, const PodReading& reading, const Reason& reason,
                           std::int64_t missing, const History& history);

// Null: the reading does not know of it, as when it is gone.
const PartReading* reading_of(const PodReading& pod, CgroupId part);

// Whether the victim's part is gone, by this sweep. `reading` is the pod's; null: its cgroup is
// gone.
bool is_part_gone(const Victim& victim, const PodReading* reading);

// What parts of this pod that are dying have yet to give back, in bytes.
std::int64_t expected_from_parts(const History& history, CgroupId pod);

// A part of the pod was killed.
void record_partial_eviction(CgroupId pod, Instant killed_at, History& history);
// Drops entries that are old or whose pod is gone.
void expire_partial_evictions(const Snapshot& snapshot, History& history);

}  // namespace headroom::judge_eviction
