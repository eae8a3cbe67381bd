// SPDX-License-Identifier: Apache-2.0
// ForecastScore: when a threshold is crossed, how far off the forecasts of the minute before were.
#pragma once

#include "report/minute.h"
#include "report/node_view.h"

#include <headroom/judge.h>

#include <vector>

namespace headroom::report {

class ForecastScore {
 public:
  static constexpr std::size_t kKept = 60;  // forecasts of a threshold, a second apart
  static constexpr Duration kStep = std::chrono::seconds(1);

  void follow(const Policy& policy, const Verdict& verdict, Instant at, Counters& counters);
  // The thresholds are others from now on.
  void forget() { thresholds_.clear(); }

 private:
  struct Forecast {
    Instant said;
    Instant crossing;
  };
  struct Kept {
    Ring<Forecast, kKept> forecasts;
    bool below = true;  // until seen above: what was so at the start was not forecast
  };
  static void score(Kept& kept, Signal signal, Instant crossed, Counters& counters);

  std::vector<Kept> thresholds_;
};

}  // namespace headroom::report
