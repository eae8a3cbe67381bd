// SPDX-License-Identifier: Apache-2.0
// headroomctl stop: a pod that run has started, all its containers.
#pragma once

#include "ctl/common/cli_command.h"

namespace headroom::ctl {

void add_stop(CLI::App& app, CliCommand& chosen);

}  // namespace headroom::ctl
