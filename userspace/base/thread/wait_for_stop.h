// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <headroom/units.h>

#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace headroom {

// Returns when a stop is requested, or after `longest`.
inline void wait_for_stop(Duration longest, const std::stop_token& stop) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any().wait_for(lock, stop, longest, [] { return false; });
}

}  // namespace headroom
