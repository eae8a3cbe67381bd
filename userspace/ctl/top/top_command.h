// SPDX-License-Identifier: Apache-2.0
// headroomctl top: a live view of the node and its pods.
#pragma once

#include "ctl/common/cli_command.h"

namespace headroom::ctl {

void add_top(ArgumentParser& app, CliCommand& chosen);

}  // namespace headroom::ctl
