// SPDX-License-Identifier: Apache-2.0
// Backoff: how long to wait after failures in a row. The wait doubles each time and is random, so
// that the nodes of a cluster do not retry at the same moment.
#pragma once

#include <headroom/units.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace headroom::kube {

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
