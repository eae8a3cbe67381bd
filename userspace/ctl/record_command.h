// SPDX-License-Identifier: Apache-2.0
// headroomctl record: writes what headroomd observes and decides into a file.
#pragma once

#include "ctl/common/cli_command.h"

namespace headroom::ctl {

void add_record(ArgumentParser& app, CliCommand& chosen);

}  // namespace headroom::ctl
