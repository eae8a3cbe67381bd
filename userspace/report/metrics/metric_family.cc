// SPDX-License-Identifier: Apache-2.0
#include "report/metrics/metric_family.h"

#include <limits>

namespace headroom::report {

Labels labels(std::initializer_list<Label> pairs) {
  Labels result;
  result.reserve(pairs.size());
  for (const auto& [name, value] : pairs)
    result.push_back({std::string(name), std::string(value)});
  return result;
}

MetricFamilyBuilder::MetricFamilyBuilder(std::string_view name, std::string_view help,
                                         prometheus::MetricType type) {
  family_.name = name;
  family_.help = help;
  family_.type = type;
}

MetricFamilyBuilder MetricFamilyBuilder::gauge(std::string_view name, std::string_view help) {
  return {name, help, prometheus::MetricType::Gauge};
}
MetricFamilyBuilder MetricFamilyBuilder::counter(std::string_view name, std::string_view help) {
  return {name, help, prometheus::MetricType::Counter};
}
MetricFamilyBuilder MetricFamilyBuilder::histogram(std::string_view name, std::string_view help) {
  return {name, help, prometheus::MetricType::Histogram};
}

MetricFamilyBuilder& MetricFamilyBuilder::add(double value, Labels with) {
  prometheus::ClientMetric& metric = family_.metric.emplace_back();
  metric.label = std::move(with);
  if (family_.type == prometheus::MetricType::Counter)
    metric.counter.value = value;
  else
    metric.gauge.value = value;
  return *this;
}

MetricFamilyBuilder& MetricFamilyBuilder::add(const LatencyHistogram& latency,
                                              std::initializer_list<Label> pairs) {
  prometheus::ClientMetric& metric = family_.metric.emplace_back();
  metric.label = labels(pairs);
  std::uint64_t so_far = 0;
  for (std::size_t i = 0; i < latency.counts.size(); ++i) {
    so_far += latency.counts[i];
    const double bound = i < LatencyHistogram::kBounds.size()
                             ? LatencyHistogram::kBounds[i]
                             : std::numeric_limits<double>::infinity();
    metric.histogram.bucket.push_back({so_far, bound});
  }
  metric.histogram.sample_count = so_far;
  metric.histogram.sample_sum = latency.sum;
  return *this;
}

MetricFamilyBuilder& MetricFamilyBuilder::add(const Distribution& distribution,
                                              std::initializer_list<Label> pairs) {
  prometheus::ClientMetric& metric = family_.metric.emplace_back();
  metric.label = labels(pairs);
  metric.histogram.bucket = distribution.buckets;
  metric.histogram.sample_count =
      distribution.buckets.empty() ? 0 : distribution.buckets.back().cumulative_count;
  metric.histogram.sample_sum = distribution.sum;
  return *this;
}

void MetricFamilyBuilder::append_to(std::vector<prometheus::MetricFamily>& families) {
  if (!family_.metric.empty()) families.push_back(std::move(family_));
}

}  // namespace headroom::report
