// SPDX-License-Identifier: Apache-2.0
// The node as pods are to see it: its taints, how many pods it takes, its name.
#pragma once

#include "config/config.h"
#include "config/yaml/section.h"

namespace headroom::config {

// The KubeletConfiguration's own keys: registerWithTaints, maxPods, podsPerCore.
void read_node(const Section& document, Config& config, Diagnostics& warnings);

// Ours, of the `headroom:` section: nodeName, nodeLabels, nodeStatus.
void read_node_identity(const Section& headroom, Config& config);

}  // namespace headroom::config
