// SPDX-License-Identifier: Apache-2.0
// RepackDesk: where repackings are asked for on one thread and done on another.
#pragma once

#include <headroom/result.h>

#include <functional>
#include <future>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace headroom::daemon {

struct RepackOrder {
  bool dry_run = false;
  std::promise<Result<std::string>> answer;
};

class RepackDesk {
 public:
  // Orders not yet served; whoever comes then is told to come again.
  static constexpr std::size_t kWaiting = 8;

  // Any thread; never waits. The answer is JSON, or why there is none.
  std::future<Result<std::string>> ask(bool dry_run) {
    RepackOrder order{.dry_run = dry_run, .answer = {}};
    auto answer = order.answer.get_future();
    const std::lock_guard lock(mutex_);
    if (!wake_)
      order.answer.set_value(failure("headroom.cpus.mode is off: no CPUs are dealt out"));
    else if (orders_.size() == kWaiting)
      order.answer.set_value(failure("others are asking for the same: try again"));
    else
      orders_.push_back(std::move(order));
    if (wake_) wake_();
    return answer;
  }

  // From now on orders are served by who is woken so.
  void open(std::function<void()> wake) {
    const std::lock_guard lock(mutex_);
    wake_ = std::move(wake);
  }
  void close() {
    for (RepackOrder& order : shut())
      order.answer.set_value(failure("headroomd is ending"));
  }
  std::vector<RepackOrder> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(orders_, {});
  }

 private:
  std::vector<RepackOrder> shut() {
    const std::lock_guard lock(mutex_);
    wake_ = nullptr;
    return std::exchange(orders_, {});
  }

  std::mutex mutex_;
  std::function<void()> wake_;  // null: nobody serves
  std::vector<RepackOrder> orders_;
};

}  // namespace headroom::daemon
