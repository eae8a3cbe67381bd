// SPDX-License-Identifier: Apache-2.0
// headroomctl run and stop: a command as a pod of this node, through systemd.
#pragma once

#include "ctl/command.h"

namespace headroom::ctl {

// The command's own status; 1: refused, or it could not be started; 2: the words are wrong; 3: no
// answer.
void add_run(CLI::App& app, Command& chosen);
void add_stop(CLI::App& app, Command& chosen);

}  // namespace headroom::ctl
