// SPDX-License-Identifier: Apache-2.0
// PodFamily: one quantity of every pod, as evictions see it. To export another, add a row to the
// table in the .cc, and to headroom-metrics(7).
#pragma once

#include "report/view/node_view.h"
#include "report/view/pod_waits.h"
#include "report/view/published.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <prometheus/metric_type.h>

namespace headroom::report {

// The input of PodFamily::read: one pod.
struct PodMetricInput {
  const PodRow& row;
  const hr_record* record = nullptr;  // of the pod's own cgroup; null: missing in this table
  QosOf qos_of = nullptr;
  const CpuWaits* cpu_waits = nullptr;  // null: unknown
};

// Adjacent rows with one name are one family: they differ in their extra labels.
struct PodFamily {
  std::string_view name;
  std::string_view help;
  std::optional<double> (*read)(const PodMetricInput&);
  // Labels beside namespace, pod and uid, ready to be written; null: none.
  std::string (*extra_labels)(const PodMetricInput&) = nullptr;
  prometheus::MetricType type = prometheus::MetricType::Gauge;
};

std::span<const PodFamily> pod_families();

}  // namespace headroom::report
