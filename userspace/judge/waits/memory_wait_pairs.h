// SPDX-License-Identifier: Apache-2.0
// MemoryWaitPairs: the pods that waited because the node was short of memory, and the pods that
// took memory meanwhile: by growth, or by reading back pages that reclaim had removed.
#pragma once

#include "judge/waits/wait_pairs.h"

#include <headroom/snapshot.h>
#include <headroom/waits.h>

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace headroom {

class MemoryWaitPairs {
 public:
  // Ends a window. Without `stalls` (not observed), or if some were lost in it, nothing is known of
  // it.
  void update(Instant at, std::span<const hr_record> records, std::span<const PodReading> pods,
              const std::optional<ByCgroup<hr_stalls>>& stalls);
  std::span<const WaitPair> longest() const { return pairs_.longest(); }

 private:
  struct Totals {
    double waited = 0;     // nanoseconds, for node-wide causes
    double usage = 0;      // bytes
    double refaulted = 0;  // pages
  };
  using PodOf = std::unordered_map<std::uint64_t, std::uint64_t>;  // a cgroup's pod

  void read_memory(std::span<const PodReading> pods);
  void add_waits(const ByCgroup<hr_stalls>& stalls, const PodOf& pod_of);

  std::optional<Instant> last_;
  std::uint64_t lost_ = 0;           // ByCgroup::lost, as of the last window
  std::vector<std::uint64_t> pods_;  // their cgroups, as of the last window
  std::vector<Totals> totals_;       // of pods_[i]
  WaitPairs pairs_;
};

}  // namespace headroom
