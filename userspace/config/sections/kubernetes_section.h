// SPDX-License-Identifier: Apache-2.0
// headroom.kubernetes: where pods come from, and which API server is notified of evictions.
#pragma once

#include "config/config.h"
#include "config/yaml/section.h"

#include <string>
#include <vector>

namespace headroom::config {

// Below headroom.kubernetes, dotted: "kubelet.url".
std::vector<std::string> kubernetes_keys();
void read_kubernetes(const Section& headroom, Config& config);

}  // namespace headroom::config
