// SPDX-License-Identifier: Apache-2.0
// `headroomctl cpus repack`: what came to lie in pieces as pods came and went is put together.
#pragma once

#include "ctl/common/cli_command.h"
#include "ctl/common/text_table.h"

#include <headroom/result.h>

#include <string>
#include <string_view>

namespace headroom::ctl {

// Below `cpus`.
void add_cpus_repack(CLI::App& cpus, CliCommand& chosen);

// headroomd's answer: which containers move, and what is gained.
Result<std::string> render_repacking(std::string_view answer, const Screen& screen);

}  // namespace headroom::ctl
