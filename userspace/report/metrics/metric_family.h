// SPDX-License-Identifier: Apache-2.0
// MetricFamilyBuilder: builds prometheus' MetricFamily values.
#pragma once

#include "report/view/turn_cost.h"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <prometheus/metric_family.h>

namespace headroom::report {

using Labels = std::vector<prometheus::ClientMetric::Label>;
using Label = std::pair<std::string_view, std::string_view>;

Labels labels(std::initializer_list<Label> pairs);

// Cumulative counts up to each bound, the last one infinite.
struct Distribution {
  std::vector<prometheus::ClientMetric::Bucket> buckets;
  double sum = 0;
};

class MetricFamilyBuilder {
 public:
  static MetricFamilyBuilder gauge(std::string_view name, std::string_view help);
  static MetricFamilyBuilder counter(std::string_view name, std::string_view help);
  static MetricFamilyBuilder histogram(std::string_view name, std::string_view help);

  MetricFamilyBuilder& add(double value, Labels labels = {});
  MetricFamilyBuilder& add(double value, std::initializer_list<Label> pairs) {
    return add(value, labels(pairs));
  }
  MetricFamilyBuilder& add(std::uint64_t value, std::initializer_list<Label> pairs = {}) {
    return add(static_cast<double>(value), labels(pairs));
  }
  MetricFamilyBuilder& add(const LatencyHistogram& latency,
                           std::initializer_list<Label> pairs = {});
  MetricFamilyBuilder& add(const Distribution& distribution,
                           std::initializer_list<Label> pairs = {});
  // Absent: no sample, never a zero.
  template <class T>
  MetricFamilyBuilder& add(const std::optional<T>& value, std::initializer_list<Label> pairs = {}) {
    return value ? add(static_cast<double>(*value), pairs) : *this;
  }

  // Moves it to the end of `families`; a family without samples is dropped.
  void append_to(std::vector<prometheus::MetricFamily>& families);

 private:
  MetricFamilyBuilder(std::string_view name, std::string_view help, prometheus::MetricType type);

  prometheus::MetricFamily family_;
};

}  // namespace headroom::report
