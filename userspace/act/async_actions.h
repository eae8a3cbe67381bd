// SPDX-License-Identifier: Apache-2.0
// AsyncActions: actions that take long, each on a thread of its own, so that the loop never waits
// for one.
#pragma once

#include <headroom/decision.h>
#include <headroom/result.h>

#include <cstddef>
#include <functional>
#include <list>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace headroom::act {

// Remove a directory and all below it, on its own filesystem, following no symbolic link.

// A directory that is not there, or a mount point that stays when emptied, is no error. The first
// thing that cannot be removed is the error; the rest is removed all the same.
Result<> remove_tree(const std::string& path, const std::stop_token& stop);

class AsyncActions {
 public:
  // More than this at once are refused: a node that needs more has other troubles.
  static constexpr std::size_t kMaxRunning = 16;
  // Returns Outcome::error. Must stop at the token's request and at the decision's deadline.
  using Work = std::function<int(const std::stop_token&)>;

  explicit AsyncActions(Instant (*now)()) : now_(now) {}
  // Stops what still runs, and waits for it.
  ~AsyncActions() = default;

  // False: too many under way, or no thread to be had.
  bool start(const Decision& decision, Work work);
  // Those that ended since the last call, as outcomes of kind kDone.
  void collect(std::vector<Outcome>& ended);

 private:
  struct RunningAction {
    bool finished = false;  // guarded by mutex_
    std::jthread thread;
  };

  Instant (*now_)();
  std::mutex mutex_;
  std::vector<Outcome> ended_;        // guarded by mutex_
  std::list<RunningAction> running_;  // last: its threads use the above
};

}  // namespace headroom::act
