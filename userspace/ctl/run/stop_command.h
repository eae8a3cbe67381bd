// SPDX-License-Identifier: Apache-2.0
// headroomctl stop: stops all containers of a pod that headroomctl run started.
#pragma once

#include "ctl/common/cli_command.h"

namespace headroom::ctl {

void add_stop(ArgumentParser& app, CliCommand& chosen);

}  // namespace headroom::ctl
