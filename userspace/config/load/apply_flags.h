// SPDX-License-Identifier: Apache-2.0
// The flags' values understood, and put in place of what the file says.
#pragma once

#include "config/config.h"
#include "config/flags/command_line.h"
#include "config/sections/eviction_settings.h"

namespace headroom::config {

void apply_flags(const CommandLine& line, Config& config, EvictionSettings& eviction,
                 Diagnostics& diagnostics);

}  // namespace headroom::config
