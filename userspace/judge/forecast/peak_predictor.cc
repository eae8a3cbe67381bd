// SPDX-License-Identifier: Apache-2.0
#include "judge/forecast/peak_predictor.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace headroom {
namespace {

double mean(std::span<const double> samples) {
  return std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
}

double deviation(std::span<const double> samples) {
  const double middle = mean(samples);
  double sum = 0;
  for (const double sample : samples)
    sum += (sample - middle) * (sample - middle);
  return std::sqrt(sum / static_cast<double>(samples.size()));
}

double bounded(const RecentUse& use, double value) {
  return use.limits > 0 ? std::min(value, use.limits) : value;
}

double sum_of_percentiles(const RecentUse& use, double share) {
  double sum = 0;
  for (const std::span<const double> pod : use.pods)
    sum += percentile(pod, share).value_or(0);
  return sum;
}

}  // namespace

std::optional<double> percentile(std::span<const double> samples, double share) {
  if (samples.empty()) return std::nullopt;
  std::vector<double> sorted(samples.begin(), samples.end());
  const double rank = std::ceil(share * static_cast<double>(sorted.size())) - 1;
  const auto index = std::min(static_cast<std::size_t>(std::max(rank, 0.0)), sorted.size() - 1);
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(index),
                   sorted.end());
  return sorted[index];
}

std::optional<double> predict_percentile(const RecentUse& use, const PredictorOptions& options) {
  if (use.node.empty()) return std::nullopt;
  return bounded(use, sum_of_percentiles(use, options.percentile) * (1 + options.margin));
}

std::optional<double> predict_sigma(const RecentUse& use, const PredictorOptions& options) {
  if (use.node.empty()) return std::nullopt;
  return bounded(use, mean(use.node) + options.sigmas * deviation(use.node));
}

std::optional<double> predict_maximum(const RecentUse& use, const PredictorOptions& options) {
  const auto by_node = predict_sigma(use, options);
  if (!by_node) return std::nullopt;
  return bounded(use, std::max(*by_node, sum_of_percentiles(use, options.pod_percentile)));
}

std::optional<double> predict_drift(const RecentUse& use, const PredictorOptions& options) {
  if (use.node.empty()) return std::nullopt;
  const std::size_t half = use.node.size() / 2;
  const double grown = half == 0 ? 0 : mean(use.node.subspan(half)) - mean(use.node.first(half));
  return bounded(use, sum_of_percentiles(use, 1) + options.drift * std::max(grown, 0.0) +
                          options.limit_margin * use.limits);
}

std::optional<double> predict_limits(const RecentUse& use, const PredictorOptions& options) {
  if (use.limits <= 0) return std::nullopt;
  return options.limit_share * use.limits;
}

}  // namespace headroom
