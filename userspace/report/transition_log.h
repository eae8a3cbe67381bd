// SPDX-License-Identifier: Apache-2.0
// TransitionLog: logs once when a node condition changes and when a threshold is met.
#pragma once

#include "report/view/node_view.h"

#include <headroom/judge.h>

#include <array>
#include <optional>

namespace headroom::report {

class TransitionLog {
 public:
  // A signal that moves around its threshold is logged no more often than the kubelet would.
  static constexpr Duration kThresholdLogPeriod = std::chrono::seconds(10);

  // True: a condition changed.
  bool update(const Policy& policy, const Verdict& verdict, Instant at, Counters& counters);

 private:
  void update_thresholds(const Policy& policy, const Verdict& verdict, Instant at);

  std::array<bool, kConditions> conditions_{};
  // Indexed by signal, then soft and hard.
  std::array<std::array<std::optional<Instant>, 2>, kSignals> last_logged_{};
};

}  // namespace headroom::report
