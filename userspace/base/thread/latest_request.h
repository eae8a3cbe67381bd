// SPDX-License-Identifier: Apache-2.0
// LatestRequest: what a worker's thread does next. A request replaces one that was not taken yet.
#pragma once

#include <headroom/units.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

namespace headroom {

template <class Request>
class LatestRequest {
 public:
  // Any thread.
  void put(Request request) {
    {
      const std::lock_guard lock(mutex_);
      next_ = std::move(request);
    }
    changed_.notify_one();
  }

  // Takes the request, for which it waits. Absent: a stop is requested.
  std::optional<Request> take(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, stop, [this] { return next_.has_value(); });
    return std::exchange(next_, std::nullopt);
  }
  // The same, for so long at most.
  std::optional<Request> take_within(Duration longest, const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, stop, longest, [this] { return next_.has_value(); });
    return std::exchange(next_, std::nullopt);
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<Request> next_;  // guarded by mutex_
};

}  // namespace headroom
