// SPDX-License-Identifier: Apache-2.0
// headroomctl top: the node, live.
#pragma once

#include "ctl/command.h"

namespace headroom::ctl {

void add_top(CLI::App& app, Command& chosen);

}  // namespace headroom::ctl
