// SPDX-License-Identifier: Apache-2.0
// PressureWindow: how much of the last moments was lost to the node's own shortage of memory, from
// totals that only grow. Decaying averages would still report pressure long after it is over.
#pragma once

#include <headroom/snapshot.h>
#include <headroom/waits.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace headroom::observe {

class PressureWindow {
 public:
  // Of an Observation made here: what is available is the part of the time that was not lost, in
  // millionths.
  static constexpr std::int64_t kWhole = 1'000'000;

  explicit PressureWindow(Duration window, std::int64_t cpus) : window_(window), cpus_(cpus) {}

  // `node` is null if waits are not watched: then the result is unknown, and the past is dropped.
  // Otherwise the time that tasks waited for memory because the node was short of it, over at least
  // the window, as a share of its CPUs' time; absent until a window has passed.
  std::optional<Observation> add(Instant at, const hr_stalls* node);

 private:
  struct Sample {
    Instant at;
    std::uint64_t ns = 0;  // of all node-wide causes, since the watch began
  };
  // Finer than the window by this, so that it slides and does not jump.
  static constexpr std::size_t kSteps = 16;

  const Sample* oldest_needed(Instant at);

  Duration window_;
  std::int64_t cpus_;
  std::array<Sample, kSteps + 2> samples_{};  // a ring
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

}  // namespace headroom::observe
