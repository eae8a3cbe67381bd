// SPDX-License-Identifier: Apache-2.0
// LatencyHistogram: a histogram of durations in fixed buckets; observing one allocates nothing.
#pragma once

#include <headroom/units.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <numeric>

namespace headroom::report {

struct LatencyHistogram {
  // Seconds. A superset of Prometheus' default buckets (which kubelet_eviction_stats_age_seconds
  // has), finer below, where headroom reacts, and longer above, where a starved victim exits.
  static constexpr std::array<double, 19> kBounds{
      0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
      0.25,   0.5,     1,      2.5,   5,      10,    30,   60,    120};
  std::array<std::uint64_t, kBounds.size() + 1> counts{};  // the last: above all bounds
  double sum = 0;

  std::uint64_t count() const {
    return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  }

  void observe(Duration duration) {
    const double seconds = std::chrono::duration<double>(duration).count();
    const auto bound = std::lower_bound(kBounds.begin(), kBounds.end(), seconds);
    ++counts[static_cast<std::size_t>(bound - kBounds.begin())];
    sum += seconds;
  }
};

}  // namespace headroom::report
