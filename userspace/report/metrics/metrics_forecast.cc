// SPDX-License-Identifier: Apache-2.0
// headroom_memory_forecast*: the forecasts of the pods' memory peak, and how earlier ones compared.
#include "report/metrics/metric_family.h"
#include "report/metrics/metrics.h"

namespace headroom::report {

void add_forecast_families(const PeakForecast::Records& records, Families& families) {
  auto bytes = MetricFamilyBuilder::gauge(
      "headroom_memory_forecast_bytes",
      "Highest memory use of all pods together within the next hour, as each predictor expects.");
  auto compared = MetricFamilyBuilder::counter(
      "headroom_memory_forecasts_total",
      "Forecasts whose hour is over, by whether use exceeded them. Saved over restarts.");
  auto error = MetricFamilyBuilder::gauge(
      "headroom_memory_forecast_error_ratio",
      "Mean of (forecast - peak) / peak over all forecasts whose hour is over.");
  for (std::size_t i = 0; i < records.size() && i < kPeakPredictors.size(); ++i) {
    const PeakForecast::Record& record = records[i];
    const std::string_view predictor = kPeakPredictors[i].name;
    bytes.add(record.forecast, {{"predictor", predictor}});
    compared.add(record.exceeded, {{"outcome", "exceeded"}, {"predictor", predictor}});
    compared.add(record.held, {{"outcome", "held"}, {"predictor", predictor}});
    error.add(record.mean_error(), {{"predictor", predictor}});
  }
  bytes.append_to(families);
  compared.append_to(families);
  error.append_to(families);
}

}  // namespace headroom::report
