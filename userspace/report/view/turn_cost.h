// SPDX-License-Identifier: Apache-2.0
// TurnCost: the time and allocations of one turn of the loop, measured by the engine;
// LatencyHistogram: durations counted by size.
#pragma once

#include <headroom/ports.h>
#include <headroom/units.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <string_view>

namespace headroom::report {

// LatencyHistogram: a histogram of durations in fixed buckets; observing one allocates nothing.

struct LatencyHistogram {
  // Seconds. A superset of Prometheus' default buckets (which kubelet_eviction_stats_age_seconds
  // has), with finer bounds at the bottom, for headroom's own reactions, and longer ones at the
  // top, for the exit of a starved victim.
  static constexpr std::array<double, 19> kBounds{
      0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
      0.25,   0.5,     1,      2.5,   5,      10,    30,   60,    120};
  std::array<std::uint64_t, kBounds.size() + 1> counts{};  // the last: above all bounds
  double sum = 0;

  std::uint64_t count() const {
    return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  }

  void observe(Duration duration) {
    const double seconds = seconds_of(duration);
    const auto bound = std::lower_bound(kBounds.begin(), kBounds.end(), seconds);
    ++counts[static_cast<std::size_t>(bound - kBounds.begin())];
    sum += seconds;
  }
};

// What woke the loop.
enum class WakeSource : std::uint8_t { kTimer, kPressure, kLifecycle, kRequest, kGuard };
inline constexpr std::size_t kWakeSources = 5;
inline constexpr std::array<std::string_view, kWakeSources> kWakeSourceNames{
    "timer", "pressure", "lifecycle", "request", "guard"};

inline constexpr std::size_t kSnapshotScopes = 2;
inline constexpr std::array<std::string_view, kSnapshotScopes> kSnapshotScopeNames{"node",
                                                                                   "cgroups"};

struct TurnCost {
  WakeSource wake = WakeSource::kTimer;
  SnapshotScope scope = SnapshotScope::kNode;  // the largest scope of this turn
  Duration snapshot{0};
  Duration judge{0};
  Duration act{0};
  Duration sweep_period{0};                 // from the latest sweep to the next
  std::uint64_t allocations = 0;            // by the loop thread, from the snapshot to the last act
  std::uint64_t kill_path_allocations = 0;  // of those: from the verdict to the last act
};

}  // namespace headroom::report
