// SPDX-License-Identifier: Apache-2.0
// ReplayState: a recorded node as it would have been if other pods had been evicted. A model with
// these rules:
//
// - A pod that the replay kills is gone after 100 ms and 80 ms for each GiB it held; from then on
// what it holds in the recording is available memory. A pod that gets SIGTERM uses its whole grace.
// - A pod that the recording evicted and the replay spares stays as it was when it was evicted:
// what it held is no longer available.
// - If the replay kills a part of a pod, its predicted release is available after 100 ms; the pod
// is shown as the recording has it.
// - The ladder's steps are taken, and change nothing that is not recorded.
// - Only memory.available and allocatableMemory.available are corrected, by memory alone.
// - Every action succeeds, at once, unless the recording holds the same action on the same pod in
// the same turn: then with the recorded result.
#pragma once

#include "recording/tape.h"

#include <headroom/snapshot.h>

#include <map>
#include <unordered_map>
#include <vector>

namespace headroom::recording {

class ReplayState {
 public:
  // The turn's snapshot, corrected. Good until the next call.
  Snapshot corrected(const Turn& turn);
  // The latest pass, corrected, at this instant: for a closer look than the recording took.
  Snapshot extra_sweeps(const Snapshot& snapshot) const;

  // What the recording and the replay did at this turn, once both are known.
  void record_decisions(const Turn& turn, const std::vector<Decision>& replayed);

 private:
  struct Killed {
    Instant gone_at;
  };
  struct PartialKill {
    CgroupId pod;
    std::int64_t bytes;
    Instant gone_at;
  };
  // A pod as it was when the recording evicted it.
  struct Spared {
    PodReading reading;
    hr_record record;
  };
  void save_pass(const Snapshot& snapshot);
  void correct(Signal signal, Snapshot& snapshot) const;
  const PodReading* recorded(CgroupId cgroup) const;
  bool gone(CgroupId cgroup, Instant at) const;

  std::vector<PodReading> pass_;  // the recording's latest
  std::vector<hr_record> records_;
  std::vector<DiskUsage> disks_;
  std::vector<PodReading> shown_;  // the same, corrected
  std::unordered_map<CgroupId, Killed> killed_;
  std::vector<PartialKill> partial_kills_;
  std::map<CgroupId, Spared> spared_;
};

}  // namespace headroom::recording
