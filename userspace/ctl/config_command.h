// SPDX-License-Identifier: Apache-2.0
// headroomctl config: the configuration in force, and the source of each value.
#pragma once

#include "config/setting.h"
#include "ctl/common/cli_command.h"

#include <headroom/result.h>

#include <string_view>

namespace headroom::ctl {

// Parses headroomd's answer.
Result<config::ConfigSettings> parse_settings(std::string_view answer);

void add_config(ArgumentParser& app, CliCommand& chosen);

}  // namespace headroom::ctl
