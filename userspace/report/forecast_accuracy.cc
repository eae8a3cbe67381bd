// SPDX-License-Identifier: Apache-2.0
#include "report/forecast_accuracy.h"

#include <chrono>

namespace headroom::report {

void ForecastAccuracy::score(ThresholdForecasts& threshold_forecasts, Signal signal,
                             Instant crossed_at, Counters& counters) {
  const auto i = static_cast<std::size_t>(signal);
  bool predicted = false;
  for (std::size_t k = 0; k < threshold_forecasts.forecasts.size(); ++k) {
    const Forecast& forecast = threshold_forecasts.forecasts[k];
    if (crossed_at - forecast.made_at > kStep * kMaxForecasts) continue;
    counters.forecast_error[i].observe(std::chrono::abs(forecast.predicted_at - crossed_at));
    predicted = true;
  }
  if (!predicted) ++counters.unpredicted_crossings[i];
  threshold_forecasts.forecasts = {};
}

void ForecastAccuracy::update(const Policy& policy, const Verdict& verdict, Instant at,
                              Counters& counters) {
  thresholds_.resize(policy.thresholds.size());
  for (const ThresholdReading& reading : verdict.thresholds) {
    if (!reading.available || reading.index >= thresholds_.size()) continue;
    ThresholdForecasts& threshold_forecasts = thresholds_[reading.index];
    const bool below = reading.below_since.has_value();
    if (below && !threshold_forecasts.below)
      score(threshold_forecasts, policy.thresholds[reading.index].signal, at, counters);
    threshold_forecasts.below = below;
    if (below || !reading.time_to) continue;
    if (threshold_forecasts.forecasts.size() > 0 &&
        at - threshold_forecasts.forecasts.newest().made_at < kStep)
      continue;
    threshold_forecasts.forecasts.next_slot() = {.made_at = at,
                                                 .predicted_at = at + *reading.time_to};
  }
}

}  // namespace headroom::report
