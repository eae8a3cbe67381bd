// SPDX-License-Identifier: Apache-2.0
// The kubelet's flags of the node as pods are to see it: over what the file says.
#pragma once

#include "config/command_line.h"
#include "config/config.h"

namespace headroom::config {

void apply_node_flags(const CommandLine& line, Config& config, Complaints& complaints);

}  // namespace headroom::config
