// SPDX-License-Identifier: Apache-2.0
#include "report/forecast_score.h"

#include <chrono>

namespace headroom::report {

void ForecastScore::score(Kept& kept, Signal signal, Instant crossed, Counters& counters) {
  const auto i = static_cast<std::size_t>(signal);
  bool foreseen = false;
  for (std::size_t k = 0; k < kept.forecasts.size(); ++k) {
    const Forecast& forecast = kept.forecasts[k];
    if (crossed - forecast.said > kStep * kKept) continue;
    counters.forecast_error[i].observe(std::chrono::abs(forecast.crossing - crossed));
    foreseen = true;
  }
  if (!foreseen) ++counters.crossings_unforeseen[i];
  kept.forecasts = {};
}

void ForecastScore::follow(const Policy& policy, const Verdict& verdict, Instant at,
                           Counters& counters) {
  thresholds_.resize(policy.thresholds.size());
  for (const ThresholdStanding& standing : verdict.thresholds) {
    if (!standing.available || standing.index >= thresholds_.size()) continue;
    Kept& kept = thresholds_[standing.index];
    const bool below = standing.below_since.has_value();
    if (below && !kept.below) score(kept, policy.thresholds[standing.index].signal, at, counters);
    kept.below = below;
    if (below || !standing.time_to) continue;
    if (kept.forecasts.size() > 0 && at - kept.forecasts.newest().said < kStep) continue;
    kept.forecasts.next() = {.said = at, .crossing = at + *standing.time_to};
  }
}

}  // namespace headroom::report
