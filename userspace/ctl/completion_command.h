// SPDX-License-Identifier: Apache-2.0
// headroomctl completion: what a shell completes, made from the command line's own description.
#pragma once

#include "ctl/common/cli_command.h"

#include <string>

namespace headroom::ctl {

std::string bash_completion(const CLI::App& app);
std::string zsh_completion(const CLI::App& app);
std::string fish_completion(const CLI::App& app);

// Hidden: make install calls it. `app` outlives the command.
void add_completion(CLI::App& app, CliCommand& chosen);

}  // namespace headroom::ctl
