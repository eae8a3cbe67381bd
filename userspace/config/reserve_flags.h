// SPDX-License-Identifier: Apache-2.0
// The kubelet's flags for what is reserved and where, put in place of what the file says.
#pragma once

#include "config/command_line.h"
#include "config/reserves_told.h"

namespace headroom::config {

void apply_reserve_flags(const CommandLine& line, ReservesTold& told, Complaints& complaints);

}  // namespace headroom::config
