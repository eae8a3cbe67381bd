// SPDX-License-Identifier: Apache-2.0
// PodFamily: one quantity of every pod, as evictions see it. To show another is to add a row to the
// table in the .cc, and to headroom-metrics(7).
#pragma once

#include "report/view/node_view.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace headroom::report {

// A pod as the table reads it.
struct PodMetricInput {
  const PodRow& row;
  const hr_record* record = nullptr;  // of the pod's own cgroup; null: missing in this table
  QosOf qos_of = nullptr;
};

struct PodFamily {
  std::string_view name;
  std::string_view help;
  std::optional<double> (*read)(const PodMetricInput&);
  // Labels beside namespace, pod and uid, ready to be written; null: none.
  std::string (*extra_labels)(const PodMetricInput&) = nullptr;
};

// All of them gauges.
std::span<const PodFamily> pod_families();

}  // namespace headroom::report
