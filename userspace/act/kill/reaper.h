// SPDX-License-Identifier: Apache-2.0
// Reaper: a thread that helps killed processes give their memory back sooner.
//
// A victim frees its memory itself, on its own CPU time: one with a small share of a busy machine
// was seen to take more than a minute for 4 GiB. So its threads are boosted, the limits of its
// cgroups are lifted (cpu.weight, cpu.max, cpuset.cpus, memory.high), and after a moment the
// processes that still exist are reaped by process_mrelease() (Linux 5.15) on this thread, which is
// boosted too, so that they do not wait for each other's locks. Never before SIGKILL, which
// process_mrelease() requires.
//
// Only processes that started before the kill are helped: a service manager may start new ones in
// the same cgroup at once. Of these, kMaxHelped with the most memory: a thousand of a fork bomb
// that run before all others would keep from running who waits for the dead, init among them. When
// all have exited, or kReapTimeout is over, the limits of the cgroup are restored.
#pragma once

#include "act/limits/suspended_limits.h"
#include "base/file_io.h"

#include <headroom/units.h>

#include <poll.h>
#include <sys/types.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

namespace headroom::act {

// Real-time scheduling: killed processes, and the thread that frees their memory, run before all
// others.
//
// SCHED_RR at the lowest real-time priority (sched(7)) is not limited by cgroup weights, quotas or
// tiers, under which a BestEffort pod on a busy node waits for seconds. Killed threads never return
// to user space: they run only their own exit.

// The pid of the process that a pidfd refers to; below 1 after the process was waited for, since
// another process may then have its pid.
pid_t pid_of(int pidfd);

// Raises every thread of a process that has been sent SIGKILL. False if no thread could be raised:
// the process has ended, CAP_SYS_NICE is missing, or the kernel allows real-time scheduling in the
// root cgroup only (RT_GROUP_SCHED).
bool raise_to_realtime(int pidfd);

// Raises the calling thread; threads that it starts are not raised. False as above.
bool raise_this_thread_to_realtime();

struct ReaperCounts {
  std::uint64_t limits_lifted = 0;  // killed cgroups whose limits were lifted, or had none
  std::uint64_t boosted = 0;        // processes that were scheduled before all others
  std::uint64_t reaped = 0;         // processes whose memory was freed by the reaper
  std::uint64_t dropped = 0;        // victims that were not helped: too many at once
};

class Reaper {
 public:
  // An exit that takes no longer than this needs no help.
  static constexpr std::chrono::milliseconds kReapDelay{15};
  // A process that still exists after this time is no longer helped.
  static constexpr std::chrono::seconds kReapTimeout{5};
  static constexpr std::size_t kMaxHelped = 64;

  explicit Reaper(std::shared_ptr<SuspendedLimits> limits = std::make_shared<SuspendedLimits>());
  // Restores the limits that are still lifted.
  ~Reaper();

  // Helps the processes of a cgroup that has just been killed. Waits for none of them and allocates
  // nothing. Any thread.
  void assist(int cgroup_directory);
  // The same for a cgroup that was killed at that instant of the boot clock.
  void assist(int cgroup_directory, Instant killed_at);
  // The same for one process that has just been killed: its cgroup still has other processes, so
  // its limits are left as they are.
  void assist_process(int pidfd);
  // Any thread.
  ReaperCounts counters() const;

 private:
  using Clock = std::chrono::steady_clock;
  // A killed process that still exists.
  struct DyingProcess {
    Fd process;  // a pidfd: readable once it has exited
    Clock::time_point due;
    Clock::time_point give_up_at;
    bool reaped = false;  // or cannot be reaped: only its exit is awaited
  };
  // The processes that one kill ended: those of a cgroup, or a single one.
  struct KilledGroup {
    std::vector<DyingProcess> dying;
    std::vector<Fd> others;  // which are not helped; their exits are awaited
    Clock::time_point give_up_at;
    std::vector<CgroupId> lifted;
  };
  // A request to assist: the descriptor of a cgroup or of a process, and when it was killed.
  struct Slot {
    std::atomic<int> descriptor{-1};  // descriptor × 2 + kind; -1: free
    Instant killed_at{};              // written before the descriptor, read after it
  };
  struct Request {
    int sent = -1;
    Instant killed_at{};
  };
  static constexpr std::size_t kCapacity = 64;

  void run(const std::stop_token& stop);
  void wait(const std::vector<KilledGroup>& victims);
  void send(int descriptor, int kind, Instant killed_at);
  Request take();
  KilledGroup begin(const Request& taken);
  void add(Fd process, KilledGroup& victim);
  void add_group(int cgroup_directory, Instant killed_at, KilledGroup& victim);
  void reap(std::vector<DyingProcess>& dying);
  void advance(std::vector<KilledGroup>& victims);

  const std::shared_ptr<SuspendedLimits> limits_;
  std::mutex send_mutex_;  // taken by the loop and by the sentinel, for one dup()
  std::array<Slot, kCapacity> slots_;
  std::size_t next_in_ = 0, next_out_ = 0;
  const Fd requested_;           // is signalled
  std::vector<pollfd> watched_;  // of the thread alone
  std::atomic<std::uint64_t> limits_lifted_{0}, boosted_{0}, reaped_{0}, dropped_{0};
  std::jthread thread_;  // destroyed first: it uses the members above
};

}  // namespace headroom::act
