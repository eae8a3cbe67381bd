// SPDX-License-Identifier: Apache-2.0
// `headroomctl cpus`: the owner of each CPU, by socket, NUMA node, cache and core.
#pragma once

#include "ctl/common/cli_command.h"
#include "ctl/common/text_table.h"

#include <headroom/result.h>

#include <string>
#include <string_view>

namespace headroom::ctl {

void add_cpus(ArgumentParser& app, CliCommand& chosen);

// headroomd's answer as a table of CPUs, and a table of the containers that have or request
// exclusive CPUs.
Result<std::string> render_cpus(std::string_view answer, const Screen& screen);

}  // namespace headroom::ctl
