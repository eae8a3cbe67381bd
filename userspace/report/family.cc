// SPDX-License-Identifier: Apache-2.0
#include "report/family.h"

#include <limits>

namespace headroom::report {

Labels labels(std::initializer_list<Label> pairs) {
  Labels result;
  result.reserve(pairs.size());
  for (const auto& [name, value] : pairs)
    result.push_back({std::string(name), std::string(value)});
  return result;
}

Family::Family(std::string_view name, std::string_view help, prometheus::MetricType type) {
  family_.name = name;
  family_.help = help;
  family_.type = type;
}

Family Family::gauge(std::string_view name, std::string_view help) {
  return {name, help, prometheus::MetricType::Gauge};
}
Family Family::counter(std::string_view name, std::string_view help) {
  return {name, help, prometheus::MetricType::Counter};
}
Family Family::histogram(std::string_view name, std::string_view help) {
  return {name, help, prometheus::MetricType::Histogram};
}

Family& Family::add(double value, Labels with) {
  prometheus::ClientMetric& metric = family_.metric.emplace_back();
  metric.label = std::move(with);
  if (family_.type == prometheus::MetricType::Counter)
    metric.counter.value = value;
  else
    metric.gauge.value = value;
  return *this;
}

Family& Family::add(const Latency& latency, std::initializer_list<Label> pairs) {
  prometheus::ClientMetric& metric = family_.metric.emplace_back();
  metric.label = labels(pairs);
  std::uint64_t so_far = 0;
  for (std::size_t i = 0; i < latency.counts.size(); ++i) {
    so_far += latency.counts[i];
    const double bound =
        i < Latency::kBounds.size() ? Latency::kBounds[i] : std::numeric_limits<double>::infinity();
    metric.histogram.bucket.push_back({so_far, bound});
  }
  metric.histogram.sample_count = so_far;
  metric.histogram.sample_sum = latency.sum;
  return *this;
}

Family& Family::add(const Distribution& distribution, std::initializer_list<Label> pairs) {
  prometheus::ClientMetric& metric = family_.metric.emplace_back();
  metric.label = labels(pairs);
  metric.histogram.bucket = distribution.buckets;
  metric.histogram.sample_count =
      distribution.buckets.empty() ? 0 : distribution.buckets.back().cumulative_count;
  metric.histogram.sample_sum = distribution.sum;
  return *this;
}

void Family::into(std::vector<prometheus::MetricFamily>& families) {
  if (!family_.metric.empty()) families.push_back(std::move(family_));
}

}  // namespace headroom::report
