// SPDX-License-Identifier: Apache-2.0
// KillFallback: a thread that kills a cgroup whose cgroup.kill does not return.
//
// A write to cgroup.kill takes the kernel's cgroup_mutex (cgroup_kn_lock_live()), which others hold
// for as long as an attach waits for an RCU grace period, or a mkdir for memory: seconds at worst,
// and worst when memory is short. Reading cgroup.procs takes css_set_lock alone. So if the write
// has not returned after kPatience, this thread sends SIGKILL to each process of the cgroup and of
// those below it, again and again until the write returns: then the kernel has killed all of them.
#pragma once

#include "base/file_io.h"

#include <headroom/units.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

namespace headroom::act {

class KillFallback {
 public:
  static constexpr std::chrono::milliseconds kPatience{2};
  // Between two looks for processes that are new.
  static constexpr std::chrono::milliseconds kPeriod{5};

  // `now` is asked from this thread.
  explicit KillFallback(Instant (*now)());
  ~KillFallback();

  // Writes to cgroup.kill of the cgroup with this directory, with this thread behind it. The result
  // and errno are those of write(). Allocates nothing. One caller at a time.
  long kill(int cgroup_directory, int cgroup_kill);

  // The two halves of kill(), around the write.
  void begin(int cgroup_directory);
  void end();

  // When this thread had sent SIGKILL to the processes, if the latest write had not returned by
  // then.
  std::optional<Instant> sent_before_write() const;

  // How often the write was too slow.
  std::uint64_t used() const { return used_; }

 private:
  using Clock = std::chrono::steady_clock;
  void run(const std::stop_token& stop);
  void send_kills(std::unique_lock<std::mutex>& lock, const std::stop_token& stop);

  Instant (*now_)();
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable_any changed_;
  int directory_ = -1;  // the caller's; -1: no write is under way
  Clock::time_point due_{};
  std::optional<Instant> sent_at_;
  std::atomic<std::uint64_t> used_{0};
  std::jthread thread_;  // last: it uses the above
};

}  // namespace headroom::act
