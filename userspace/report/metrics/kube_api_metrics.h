// SPDX-License-Identifier: Apache-2.0
// Metrics of what headroom-kube reported to the API server.
#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>
#include <prometheus/metric_family.h>

namespace headroom::report {

// `part` is "api" of the status file, an object; a missing value has no family.
void add_api_families(const nlohmann::ordered_json& part,
                      std::vector<prometheus::MetricFamily>& families);

}  // namespace headroom::report
