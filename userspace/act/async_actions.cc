// SPDX-License-Identifier: Apache-2.0
#include "act/async_actions.h"

#include "base/log/log_exceptions.h"

#include <cerrno>
#include <system_error>
#include <utility>

namespace headroom::act {

bool AsyncActions::start(const Decision& decision, Work work) {
  {
    const std::lock_guard lock(mutex_);
    running_.remove_if([](const RunningAction& action) { return action.finished; });
  }
  if (running_.size() >= kMaxRunning) return false;
  RunningAction& action = running_.emplace_back();
  try {
    action.thread = std::jthread([this, &action, decision,
                                  work = std::move(work)](const std::stop_token& stop) {
      int error = EIO;  // if it throws
      log::log_exceptions("carry out an action", [&] { error = work(stop); });
      const std::lock_guard lock(mutex_);
      action.finished = true;
      log::log_exceptions("record an action", [&] {
        ended_.push_back(Outcome{
            .decision = decision, .result = Outcome::Result::kDone, .error = error, .at = now_()});
      });
    });
  } catch (const std::system_error&) {
    running_.pop_back();
    return false;
  }
  return true;
}

void AsyncActions::collect(std::vector<Outcome>& ended) {
  ended.clear();
  if (running_.empty()) return;
  const std::lock_guard lock(mutex_);
  std::swap(ended, ended_);
}

}  // namespace headroom::act
