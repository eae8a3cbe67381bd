// SPDX-License-Identifier: Apache-2.0
// headroomctl run: a command, or the containers of a manifest, as a pod of this node, if it is
// admitted.
#pragma once

#include "ctl/common/cli_command.h"

namespace headroom::ctl {

// Where it waits it ends with the exit status of the first container that failed, like systemd-run;
// 2 and 3 are its own as well.
void add_run(CLI::App& app, CliCommand& chosen);

}  // namespace headroom::ctl
