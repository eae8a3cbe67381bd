// SPDX-License-Identifier: Apache-2.0
// Kubernetes: how headroom-kube fares, as it wrote down in its status file. Read when asked, on the
// thread that asks: never the loop's.
#pragma once

#include <filesystem>
#include <vector>

#include <nlohmann/json_fwd.hpp>
#include <prometheus/metric_family.h>

namespace headroom::report {

// The file as it is, {"kubelet": {...}, "api": {...}}; null where there is none, or it is no map.
nlohmann::ordered_json kubernetes_json(const std::filesystem::path& file);

// headroom_kube_*; nothing of what is not there.
void add_kubernetes_families(const std::filesystem::path& file,
                             std::vector<prometheus::MetricFamily>& families);

}  // namespace headroom::report
