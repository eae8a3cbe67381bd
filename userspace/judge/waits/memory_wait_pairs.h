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

namespace headroom {

class MemoryWaitPairs {
 public:
  // Ends a window. Without `stalls` (not observed) nothing is known of it.
  void update(Instant at, std::span<const hr_record> records, std::span<const PodReading> pods,
              const std::optional<ByCgroup<hr_stalls>>& stalls);
  std::span<const WaitPair> longest() const { return pairs_.longest(); }

 private:
  struct Totals {
    double waited = 0;     // nanoseconds, for node-wide causes
    double usage = 0;      // bytes
    double refaulted = 0;  // pages
  };

  std::optional<Instant> last_;
  std::unordered_map<std::uint64_t, Totals> last_totals_;  // by the pod's cgroup
  WaitPairs pairs_;
};

}  // namespace headroom
