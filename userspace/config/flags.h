// SPDX-License-Identifier: Apache-2.0
// The flags' values understood, and put in place of what the file says.
#pragma once

#include "config/command_line.h"
#include "config/config.h"
#include "config/eviction_told.h"

namespace headroom::config {

void apply_flags(const CommandLine& line, Config& config, EvictionTold& eviction,
                 Complaints& complaints);

}  // namespace headroom::config
