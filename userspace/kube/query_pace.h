// SPDX-License-Identifier: Apache-2.0
// QueryPace: how soon the kubelet is asked about a pod cgroup that has just appeared: at once, but
// not earlier than kShortest after the last query. The gap doubles after each such query that
// brought no new pod, up to the normal period.
#pragma once

#include <headroom/units.h>

#include <algorithm>
#include <chrono>

namespace headroom::kube {

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

}  // namespace headroom::kube
