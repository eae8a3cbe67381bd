// SPDX-License-Identifier: Apache-2.0
// AsyncActions: runs slow actions, each on a thread of its own, so that the loop never waits.
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

// Removes a directory with its content, on its own filesystem only and without following symbolic
// links.

// It is no error if the directory does not exist, or if it is a mount point and stays after it was
// emptied. The first entry that cannot be removed is the error; the others are removed anyway.
Result<> remove_tree(const std::string& path, const std::stop_token& stop);

class AsyncActions {
 public:
  // More actions at once are refused.
  static constexpr std::size_t kMaxRunning = 16;
  // Returns Outcome::error. Must stop when the token requests it, and at the decision's deadline.
  using Work = std::function<int(const std::stop_token&)>;

  explicit AsyncActions(Instant (*now)()) : now_(now) {}
  // Stops running actions, and waits for them.
  ~AsyncActions() = default;

  // False: too many actions are running, or no thread could be started.
  bool start(const Decision& decision, Work work);
  // The actions that ended since the last call, as outcomes of kind kDone.
  void collect(std::vector<Outcome>& ended);

 private:
  struct RunningAction {
    bool finished = false;  // guarded by mutex_
    std::jthread thread;
  };

  Instant (*now_)();
  std::mutex mutex_;
  std::vector<Outcome> ended_;        // guarded by mutex_
  std::list<RunningAction> running_;  // destroyed first: its threads use the members above
};

}  // namespace headroom::act
