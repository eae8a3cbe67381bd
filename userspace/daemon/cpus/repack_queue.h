// SPDX-License-Identifier: Apache-2.0
// RepackQueue: requests to repack CPUs, made on one thread and served on another.
#pragma once

#include <headroom/result.h>

#include <functional>
#include <future>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace headroom::daemon {

struct RepackRequest {
  bool dry_run = false;
  std::promise<Result<std::string>> result;
};

class RepackQueue {
 public:
  // Requests not yet served; a further one is refused.
  static constexpr std::size_t kQueueSize = 8;

  // Any thread; never waits. The answer is JSON, or why there is none.
  std::future<Result<std::string>> submit(bool dry_run) {
    RepackRequest request{.dry_run = dry_run, .result = {}};
    auto result = request.result.get_future();
    const std::lock_guard lock(mutex_);
    if (!wake_)
      request.result.set_value(failure("headroom.cpus.mode is off: no CPUs are assigned"));
    else if (requests_.size() == kQueueSize)
      request.result.set_value(failure("others are asking for the same: try again"));
    else
      requests_.push_back(std::move(request));
    if (wake_) wake_();
    return result;
  }

  // From now on requests are served by the thread that `wake` wakes.
  void open(std::function<void()> wake) {
    const std::lock_guard lock(mutex_);
    wake_ = std::move(wake);
  }
  void close() {
    for (RepackRequest& request : close_queue())
      request.result.set_value(failure("headroomd is ending"));
  }
  std::vector<RepackRequest> take_all() {
    const std::lock_guard lock(mutex_);
    return std::exchange(requests_, {});
  }

 private:
  std::vector<RepackRequest> close_queue() {
    const std::lock_guard lock(mutex_);
    wake_ = nullptr;
    return std::exchange(requests_, {});
  }

  std::mutex mutex_;
  std::function<void()> wake_;  // null: requests are not served
  std::vector<RepackRequest> requests_;
};

}  // namespace headroom::daemon
