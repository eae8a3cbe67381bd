// SPDX-License-Identifier: Apache-2.0
// `headroomctl cpus repack`: moves exclusive CPUs together that became fragmented as pods came and
// went.
#pragma once

#include "ctl/common/cli_command.h"
#include "ctl/common/text_table.h"

#include <headroom/result.h>

#include <string>
#include <string_view>

namespace headroom::ctl {

// Adds the subcommand to `cpus`.
void add_cpus_repack(ArgumentParser& cpus, CliCommand& chosen);

// headroomd's answer as text: which containers move, and the gain.
Result<std::string> render_repacking(std::string_view answer, const Screen& screen);

}  // namespace headroom::ctl
