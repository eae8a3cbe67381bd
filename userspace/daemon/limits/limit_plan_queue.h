// SPDX-License-Identifier: Apache-2.0
// LimitPlanQueue: the plans of the limits' thread on their way to a recording.
#pragma once

#include "recording/limit_plans.h"

#include <headroom/units.h>

#include <atomic>
#include <cstddef>
#include <mutex>

namespace headroom::daemon {

// All functions: on any thread.
class LimitPlanQueue {
 public:
  // More than the thread makes in a second.
  static constexpr std::size_t kCapacity = 8192;

  // Begins empty.
  void switch_on();
  void switch_off() { on_ = false; }

  bool is_on() const { return on_; }
  // Counts it as lost if the queue is full; does nothing unless it is on.
  void add(const recording::PlannedLimit& planned);
  // Leaves the queue empty.
  recording::LimitPlans take(Instant at);
  // They did not get into the recording: the next ones that are taken say so.
  void lose(const recording::LimitPlans& taken);

 private:
  std::atomic<bool> on_{false};
  std::mutex mutex_;
  recording::LimitPlans waiting_;
};

}  // namespace headroom::daemon
