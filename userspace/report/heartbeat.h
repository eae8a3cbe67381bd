// SPDX-License-Identifier: Apache-2.0
// Heartbeat: when the loop was last seen to turn. The loop writes it, any thread reads it.
#pragma once

#include <headroom/units.h>

#include <atomic>
#include <chrono>

namespace headroom::report {

class Heartbeat {
 public:
  // 1.5 times the unit's WatchdogSec: if systemd's watchdog is active, it acts first.
  static constexpr Duration kLongest = std::chrono::seconds(15);
  // The longest time between two beats of an idle loop.
  static constexpr Duration kPeriod = std::chrono::seconds(3);

  // The loop has until kLongest from here for its first beat.
  explicit Heartbeat(Instant (*now)()) : now_(now) { beat(); }

  void beat() { last_.store(now_().time_since_epoch().count(), std::memory_order_relaxed); }
  // The first sweep is done.
  void set_ready() { ready_.store(true, std::memory_order_relaxed); }

  Duration age() const {
    return now_() - Instant(Instant::duration(last_.load(std::memory_order_relaxed)));
  }
  bool is_live() const { return age() < kLongest; }
  bool is_ready() const { return ready_.load(std::memory_order_relaxed) && is_live(); }

 private:
  Instant (*const now_)();
  std::atomic<Instant::rep> last_{0};
  std::atomic<bool> ready_{false};
};

}  // namespace headroom::report
