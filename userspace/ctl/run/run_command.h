// SPDX-License-Identifier: Apache-2.0
// headroomctl run: runs a command, or the containers of a manifest, as a pod of this node, if it is
// admitted.
#pragma once

#include "ctl/common/cli_command.h"

namespace headroom::ctl {

// If it waits, it exits with the status of the first container that failed, like systemd-run. It
// also uses 2 and 3 itself.
void add_run(ArgumentParser& app, CliCommand& chosen);

}  // namespace headroom::ctl
