// SPDX-License-Identifier: Apache-2.0
// FailedTurns: counts the turns in a row that threw. A loop whose every turn throws still feeds the
// watchdog, so it must end by itself: systemd then restarts the daemon and reports the failure.
#pragma once

#include "base/log/log_exceptions.h"

namespace headroom::daemon {

class FailedTurns {
 public:
  // Each failed turn is followed by a retry after a second.
  static constexpr int kLimit = 5;

  // Runs one turn; an exception is logged. False: this is the kLimit-th turn in a row that threw.
  template <typename Turn>
  bool run(Turn&& turn) {
    in_a_row_ = log::log_exceptions("turn", turn) ? 0 : in_a_row_ + 1;
    return in_a_row_ < kLimit;
  }

 private:
  int in_a_row_ = 0;
};

}  // namespace headroom::daemon
