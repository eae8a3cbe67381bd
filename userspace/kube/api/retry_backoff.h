// SPDX-License-Identifier: Apache-2.0
// Backoff: how long to leave a server alone that did not do what it was asked.
#pragma once

#include <headroom/units.h>

#include <algorithm>
#include <chrono>
#include <optional>

namespace headroom::kube {

inline constexpr Duration kFirstWait = std::chrono::milliseconds(250);
inline constexpr Duration kMaxWait = std::chrono::seconds(10);
// A refused request will be refused again until a role or a version changes.
inline constexpr Duration kRefusedRetryWait = std::chrono::minutes(1);
inline constexpr Duration kMaxRetryAfter = std::chrono::minutes(10);  // of what a server may ask

// After so many failures (from 1) in a row. `chance` is from [0, 1): thousands of nodes that lost
// the same server must not come back to it in the same moment. Half of the wait is certain; what
// the server asked for is waited for in full, and up to a quarter more.
constexpr Duration wait_after(unsigned failures, double chance,
                              std::optional<Duration> retry_after = {},
                              Duration longest = kMaxWait) {
  const unsigned doublings = std::min(failures > 0 ? failures - 1 : 0, 16U);
  const Duration full = std::min(kFirstWait * (1 << doublings), longest);
  const auto part = [](Duration whole, double share) {
    return Duration(static_cast<Duration::rep>(static_cast<double>(whole.count()) * share));
  };
  const Duration wait = part(full, 0.5 + chance / 2);
  if (!retry_after) return wait;
  return std::max(wait, part(std::min(*retry_after, kMaxRetryAfter), 1 + chance / 4));
}

}  // namespace headroom::kube
