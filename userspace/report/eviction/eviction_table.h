// SPDX-License-Identifier: Apache-2.0
// EvictionTable: the evictions in progress, in a fixed number of preallocated records.
#pragma once

#include "report/eviction/eviction.h"

#include <cstdint>
#include <vector>

namespace headroom::report {

// One pod's eviction in progress. A failed one or a dry run stays for a while after it was
// reported: the same decision about the same pod, made again every few milliseconds, is not
// reported again.
struct TrackedEviction {
  Eviction eviction;
  CgroupId cgroup;  // 0: this record is free
  Part part{};
  Ending reported = Ending::kOpen;
  int reported_error = 0;
  Instant last_seen;
};

class EvictionTable {
 public:
  static constexpr std::size_t kRecords = 64;
  // The kubelet's default maxPods: rankings up to this long are kept without allocating.
  static constexpr std::size_t kTypicalPods = 110;

  EvictionTable();

  // The eviction of a pod or of a part of it; null: none.
  TrackedEviction* find(CgroupId cgroup, const Part& part = {});
  // Returns a cleared record. If all are taken, the one not seen for longest is dropped;
  // overwritten() counts it if its end was not reported yet.
  TrackedEviction& open(CgroupId cgroup, const Part& part, Instant at);
  void close(TrackedEviction& tracked);
  // Drops records that were reported and not seen for `retention`.
  void remove_reported(Instant at, Duration retention);

  std::uint64_t overwritten() const { return overwritten_; }

 private:
  std::vector<TrackedEviction> records_;
  std::uint64_t overwritten_ = 0;
};

// Empties a record, keeping its buffers.
void reset(Eviction& eviction);

}  // namespace headroom::report
