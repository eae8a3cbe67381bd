// SPDX-License-Identifier: Apache-2.0
// The metrics of headroom-kube, from its status file. Read when scraped, on the scraper's thread.
#pragma once

#include <filesystem>
#include <vector>

#include <prometheus/metric_family.h>

namespace headroom::report {

// headroom_kube_*; a value that the file lacks has no sample.
void add_kubernetes_families(const std::filesystem::path& file,
                             std::vector<prometheus::MetricFamily>& families);

}  // namespace headroom::report
