// SPDX-License-Identifier: Apache-2.0
// Sentinel: a thread that kills when the loop hangs.
//
// The loop reports when its next turn is due and sets a failsafe list of victims, in the order of
// their ranking, each with open descriptors. When that turn is overdue, the sentinel
// reads the node's memory itself, and at the hard threshold kills from the list, one at a time,
// until memory is available again: the next one when what the last one held has stopped coming
// back. The loop collects what it did as outcomes when it turns again.
#pragma once

#include "act/kill/reaper.h"
#include "base/file_io.h"

#include <headroom/decision.h>
#include <headroom/snapshot.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

namespace headroom::act {

struct FailsafeVictim {
  Decision decision;  // a kKill; its reason is as of when the list was made
  Fd directory;
  Fd kill;
  Fd events;
  Fd process{};          // a pidfd if one process is the victim: then `kill` is not open
  Instant not_before{};  // after a kill: no further attempt before this time
};

// LatenessCheck: whether the loop is late. All of its times are given to it.
class LatenessCheck {
 public:
  // A turn that is this late is not explained by a busy CPU.
  static constexpr Duration kLate = std::chrono::seconds(1);

  // `due`: when the loop's next turn is due, as it said last. If the caller is late itself, as
  // everything is after the machine was suspended, the loop has kLate from now on; once for a
  // `due`, since a caller that is always late must still find a loop that hangs.
  bool is_late(Instant due, Instant now);
  // When the caller means to ask again, or meant to ask now.
  void set_next(Instant next) { next_ = next; }

 private:
  std::optional<Instant> next_;
  std::optional<Instant> excused_due_;
  Instant excused_at_{};
};

class Sentinel {
 public:
  static constexpr Duration kOverdue = LatenessCheck::kLate;
  // How often memory is read while the loop is overdue.
  static constexpr Duration kPeriod = std::chrono::milliseconds(20);

  struct Setup {
    // Both are called on the sentinel's thread.
    std::function<std::optional<Observation>()> read_memory;
    // The working set in bytes of the cgroup whose directory this is; absent: unknown. The list is
    // seconds old: what filled the node since was small when it was ranked. Null: the list's order.
    std::function<std::optional<std::int64_t>(int directory)> working_set{};
    Instant (*now)();
    Reaper* reaper = nullptr;  // must outlive the sentinel
    // A cgroup that was killed and is still, or again, populated is killed again after this.
    Duration kill_again_after = std::chrono::seconds(10);
  };
  // Throws std::system_error if the kernel gives it no thread, timer or eventfd.
  explicit Sentinel(Setup setup);
  ~Sentinel();

  // Reports that the loop works; its next turn is due at `due`. Wakes no thread: it moves a timer.
  void beat(Instant due);
  // Sets the list, used while memory.available is below `limit` bytes. Empty: nothing is killed.
  void set_failsafe_list(std::int64_t limit, std::vector<FailsafeVictim> victims);
  // The outcomes since the last call.
  void collect(std::vector<Outcome>& ended);

  // How often the loop was found overdue, and the number of kills by the sentinel.
  std::uint64_t hangs() const { return hangs_; }
  std::uint64_t kills() const { return kills_; }

 private:
  void run(const std::stop_token& stop);
  bool is_overdue(Instant due, Instant now);
  void check_memory();
  void act(const Observation& seen);
  bool is_memory_returning(std::int64_t available);
  bool may_be_killed(const FailsafeVictim& victim) const;
  FailsafeVictim* choose(std::int64_t missing);

  const Setup setup_;
  const Fd timer_, stop_;  // a timerfd that expires when the loop is overdue; an eventfd
  std::atomic<Instant> due_{Instant::max()};  // the loop has yet to turn
  LatenessCheck lateness_;                    // the thread's alone
  std::atomic<std::uint64_t> hangs_{0}, kills_{0};
  std::atomic<bool> has_outcomes_{false};
  // The thread's alone. No kill before wait_until_: a victim's memory is awaited, further while
  // memory.available rises beyond returned_to_.
  Instant wait_until_{}, killed_at_{};
  std::int64_t returned_to_ = 0;
  std::mutex mutex_;  // protects the members below
  std::int64_t limit_ = 0;
  std::vector<FailsafeVictim> victims_;
  std::vector<Outcome> done_;
  std::jthread thread_;  // destroyed first: it uses the members above
};

}  // namespace headroom::act
