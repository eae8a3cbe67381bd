// SPDX-License-Identifier: Apache-2.0
// wait_after(): how long to wait after failed requests to a server before the next one.
#pragma once

#include <headroom/units.h>

#include <algorithm>
#include <chrono>
#include <optional>

namespace headroom::kube {

inline constexpr Duration kFirstWait = std::chrono::milliseconds(250);
inline constexpr Duration kMaxWait = std::chrono::seconds(10);
// The least wait after a refusal: a request is refused again until a role or a version changes.
inline constexpr Duration kRefusedRetryWait = std::chrono::minutes(1);
inline constexpr Duration kMaxRetryAfter = std::chrono::minutes(10);  // a longer one is cut to this

// The wait after `failures` in a row (from 1). `chance` is random, in [0, 1): thousands of nodes
// that lost the same server must not return to it at the same moment. The result is between half of
// the wait and all of it; a Retry-After is waited for in full, and up to a quarter longer.
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
