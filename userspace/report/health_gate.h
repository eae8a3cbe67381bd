// SPDX-License-Identifier: Apache-2.0
// HealthGate: takes every connection to the HTTP server and answers /livez and /readyz itself, on a
// thread of its own; any other connection is passed on, with nothing read from it.
//
// A health answer only reads two atomics. It needs no file, no published buffer, no lock of the
// server and none of its connection slots, so a slow scrape, or one that waits for a disk, cannot
// delay it.
#pragma once

#include "base/file_io.h"

#include <headroom/result.h>
#include <headroom/units.h>

#include <poll.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

namespace headroom::report {

// Heartbeat: the time of the loop's last turn. The loop writes it, any thread reads it.

class Heartbeat {
 public:
  // 1.5 times the unit's WatchdogSec: if systemd's watchdog is active, it acts first.
  static constexpr Duration kLongest = std::chrono::seconds(15);
  // The longest time between two beats of an idle loop.
  static constexpr Duration kPeriod = std::chrono::seconds(3);

  // The loop's first beat is due within kLongest after the construction.
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

class HealthGate {
 public:
  using Pass = std::function<void(Fd)>;  // called on the gate's thread

  // `listening` is non-blocking. Connections that send nothing for `silence` are closed. Without a
  // heartbeat every connection is passed on.
  static Result<std::unique_ptr<HealthGate>> open(Fd listening,
                                                  std::shared_ptr<const Heartbeat> heartbeat,
                                                  std::chrono::seconds silence, Pass pass);
  ~HealthGate();
  HealthGate(const HealthGate&) = delete;
  HealthGate& operator=(const HealthGate&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  struct Silent {
    Fd fd;
    Clock::time_point since;
  };
  HealthGate(Fd listening, std::shared_ptr<const Heartbeat> heartbeat, std::chrono::seconds silence,
             Pass pass)
      : listening_(std::move(listening)),
        heartbeat_(std::move(heartbeat)),
        silence_(silence),
        pass_(std::move(pass)) {}
  void run();
  void serve_ready(const std::vector<pollfd>& watched);
  void accept_all();
  void take(Fd fd);
  bool answer(const Fd& fd, std::string_view request) const;

  Fd listening_, wake_;
  const std::shared_ptr<const Heartbeat> heartbeat_;
  const std::chrono::seconds silence_;
  const Pass pass_;
  std::vector<Silent> silent_;  // connections that have sent nothing so far; oldest first
  std::thread thread_;
};

}  // namespace headroom::report
