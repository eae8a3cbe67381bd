// SPDX-License-Identifier: Apache-2.0
// EvictionTable: the evictions under way, in a fixed number of records made beforehand.
#pragma once

#include "report/eviction.h"

#include <cstdint>
#include <vector>

namespace headroom::report {

// One pod's eviction as it unfolds. A failed or pretended one stays for a while after it was
// told: the same decision about the same pod, made again every few milliseconds, is not news.
struct Unfolding {
  Eviction eviction;
  CgroupId cgroup;  // 0: this record is free
  Part part{};
  Ending told = Ending::kOpen;
  int told_error = 0;
  Instant last_seen;
};

class EvictionTable {
 public:
  static constexpr std::size_t kRecords = 64;
  // The kubelet's default maxPods: rankings up to this long are kept without allocating.
  static constexpr std::size_t kUsualPods = 110;

  EvictionTable();

  // Null: none. Of a pod, or of a part of it.
  Unfolding* find(CgroupId cgroup, const Part& part = {});
  // A cleared record; the one longest unseen makes way when all are taken, told to be lost through
  // `overwrote`.
  Unfolding& open(CgroupId cgroup, const Part& part, Instant at);
  void close(Unfolding& unfolding);
  // Forgets what was told and has not been seen for `quiet`.
  void forget_told(Instant at, Duration quiet);

  std::uint64_t overwritten() const { return overwritten_; }

 private:
  std::vector<Unfolding> records_;
  std::uint64_t overwritten_ = 0;
};

// Empties a record, keeping its buffers.
void reset(Eviction& eviction);

}  // namespace headroom::report
