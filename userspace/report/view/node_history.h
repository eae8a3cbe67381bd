// SPDX-License-Identifier: Apache-2.0
// NodeHistory: the node's signals and waits over the last half hour, at a falling resolution and in
// bounded memory, for charts.
//
// The loop adds samples and never waits: a sample that is due while a reader copies is taken in the
// next turn instead.
#pragma once

#include <headroom/bpf/stall_abi.h>
#include <headroom/snapshot.h>

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace headroom::report {

struct HistorySample {
  // The causes of stalls, then throttling by a CPU quota.
  static constexpr std::size_t kWaitCauses = HR_STALL_CAUSES + 1;

  Instant at{};
  std::array<std::optional<std::int64_t>, kSignals> available;   // in the unit of the signal
  std::array<std::optional<std::uint64_t>, kWaitCauses> waited;  // ns since the watch began
};

HistorySample history_sample(const Snapshot& snapshot);

class NodeHistory {
 public:
  // Each resolution: the time between two samples, and how many are kept.
  struct Resolution {
    Duration period;
    std::size_t samples;
  };
  // Two minutes with a sample per second, and half an hour with a sample per ten seconds.
  static constexpr std::array<Resolution, 2> kResolutions{
      {{std::chrono::seconds(1), 120}, {std::chrono::seconds(10), 180}}};

  NodeHistory();
  // Called on the loop's thread. Does nothing if no resolution is due, or if a reader is copying.
  // Samples must not go back in time. Allocates nothing.
  void add(const Snapshot& snapshot);
  // The samples, oldest first: the coarser ones end where the finer ones begin. Any thread.
  std::vector<HistorySample> samples() const;

 private:
  struct Ring {
    std::vector<HistorySample> samples;  // as many as the resolution keeps
    std::size_t next = 0;                // where the next one goes
    std::size_t size = 0;

    const HistorySample& nth(std::size_t i) const;  // 0: the oldest
  };

  mutable std::mutex mutex_;
  std::array<Ring, kResolutions.size()> rings_;
};

}  // namespace headroom::report
