// SPDX-License-Identifier: Apache-2.0
// The kubelet's flags for what is reserved and where, put in place of what the file says.
#pragma once

#include "config/flags/command_line.h"
#include "config/sections/reserved_settings.h"

namespace headroom::config {

void apply_reserve_flags(const CommandLine& line, ReservedSettings& settings,
                         Diagnostics& diagnostics);

}  // namespace headroom::config
