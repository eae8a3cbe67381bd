// SPDX-License-Identifier: Apache-2.0
// headroomctl check: does headroom work on this host, and if not all of it, what to do?
#pragma once

#include "ctl/common/cli_command.h"

namespace headroom::ctl {

// 0: it works; 1: something essential is missing.
void add_check(CLI::App& app, CliCommand& chosen);

}  // namespace headroom::ctl
