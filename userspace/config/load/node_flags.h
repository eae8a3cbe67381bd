// SPDX-License-Identifier: Apache-2.0
// The kubelet's flags of the node as pods are to see it: over what the file says.
#pragma once

#include "config/config.h"
#include "config/flags/command_line.h"

namespace headroom::config {

void apply_node_flags(const CommandLine& line, Config& config, Diagnostics& diagnostics);

}  // namespace headroom::config
