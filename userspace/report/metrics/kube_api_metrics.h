// SPDX-License-Identifier: Apache-2.0
// What headroom-kube sent to the API server, as metrics.
#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>
#include <prometheus/metric_family.h>

namespace headroom::report {

// `part` is "api" of the status file, an object; what is not in it has no family.
void add_api_families(const nlohmann::ordered_json& part,
                      std::vector<prometheus::MetricFamily>& families);

}  // namespace headroom::report
