// SPDX-License-Identifier: Apache-2.0
// When to query the kubelet again: after failures in a row, and at the pace that new cgroups ask
// for.
#pragma once

#include <headroom/units.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace headroom::kube {

// QueryPace: how soon the kubelet is asked about a pod cgroup that has just appeared: at once, but
// not earlier than kShortest after the last query. The gap doubles after each such query that
// brought no new pod, up to the normal period.

class QueryPace {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr Duration kShortest = std::chrono::milliseconds(200);

  explicit QueryPace(Duration period) : longest_(std::max(period, kShortest)) {}

  // A query ended. `early`: a new cgroup was its reason; `brought_news`: a pod's file was written.
  void asked(Time at, bool early, bool brought_news) {
    last_ = at;
    gap_ = early && !brought_news ? std::min(gap_ * 2, longest_) : kShortest;
  }
  // When to query the kubelet about a cgroup that was seen at this time.
  Time due(Time seen) const { return std::max(seen, last_ + gap_); }

 private:
  Duration longest_;
  Duration gap_ = kShortest;
  Time last_{};
};

struct Backoff {
  Duration first = std::chrono::seconds(1);
  Duration max_wait = std::chrono::seconds(30);

  // The wait after the nth failure in a row (from 1). `random_bits` is a new random number for each
  // call. The result is between half of the wait and all of it.
  Duration after(unsigned failures, std::uint64_t random_bits) const {
    Duration wait = std::min(first, max_wait);
    for (unsigned i = 1; i < failures && wait < max_wait; ++i)
      wait = std::min(wait * 2, max_wait);
    const Duration half = wait / 2;
    return half +
           Duration(static_cast<Duration::rep>(
               random_bits % static_cast<std::uint64_t>(std::max<Duration::rep>(half.count(), 1))));
  }
};

}  // namespace headroom::kube
