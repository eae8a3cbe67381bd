// SPDX-License-Identifier: Apache-2.0
// ForecastAccuracy: the error of the forecasts of the last minute when a threshold is crossed.
#pragma once

#include "report/eviction/flight_recorder.h"
#include "report/view/node_view.h"

#include <headroom/judge.h>

#include <vector>

namespace headroom::report {

class ForecastAccuracy {
 public:
  static constexpr std::size_t kMaxForecasts = 60;  // forecasts of a threshold, a second apart
  static constexpr Duration kStep = std::chrono::seconds(1);

  void update(const Policy& policy, const Verdict& verdict, Instant at, Counters& counters);
  // The thresholds have changed.
  void reset() { thresholds_.clear(); }

 private:
  struct Forecast {
    Instant made_at;
    Instant predicted_at;
  };
  struct ThresholdForecasts {
    Ring<Forecast, kMaxForecasts> forecasts;
    bool below = true;  // until seen above: a threshold crossed at the start was not forecast
  };
  static void score(ThresholdForecasts& threshold_forecasts, Signal signal, Instant crossed_at,
                    Counters& counters);

  std::vector<ThresholdForecasts> thresholds_;
};

}  // namespace headroom::report
