// SPDX-License-Identifier: Apache-2.0
// GrowingWaiters: how much of the waiting for memory is of cgroups that grow. They wait for the
// memory they take themselves; while no other waits, the node goes on.
#pragma once

#include <headroom/bpf/abi.h>
#include <headroom/units.h>
#include <headroom/waits.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

namespace headroom::observe {

class GrowingWaiters {
 public:
  // A cgroup grows if its memory and swap together grew by more than this in a second, in bytes.
  static constexpr std::int64_t kGrowth = 1 << 20;
  // In a shorter time than this too few waits end: such a sweep is left out.
  static constexpr Duration kMinPeriod = std::chrono::milliseconds(200);

  // Null: there is no record of the cgroup in the sweep.
  using RecordOf = std::function<const hr_record*(CgroupId)>;

  // How long a cgroup waited between the last two of these sweeps, for the node's own causes.
  struct Wait {
    CgroupId cgroup;
    std::uint64_t ns = 0;
  };

  // After a sweep. A cgroup without its memory in both sweeps counts as one that does not grow.
  // False: left out.
  bool update(Instant at, const ByCgroup<hr_stalls>& stalls, const RecordOf& record_of);

  // Between the last two of these sweeps, of all waits for the node's own causes: from 0 to 1; 0 if
  // there were none.
  double share() const { return share_; }
  std::span<const Wait> waits() const { return waits_; }
  // The time between them; at the first one since boot.
  Duration period() const { return period_; }

 private:
  struct Seen {
    std::uint64_t ns = 0;    // waits for the node's own causes
    std::int64_t size = -1;  // bytes of memory and swap; negative: unknown
  };
  std::unordered_map<std::uint64_t, Seen> seen_, before_;
  std::vector<Wait> waits_;
  Instant at_{};
  Duration period_{};
  double share_ = 0;
};

// Nanoseconds of waits for the causes that are the node's own.
std::uint64_t node_wide(const hr_stalls& stalls);

}  // namespace headroom::observe
