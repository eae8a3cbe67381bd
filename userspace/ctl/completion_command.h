// SPDX-License-Identifier: Apache-2.0
// headroomctl completion: makes shell completions from the description of the command line.
#pragma once

#include "ctl/common/cli_command.h"

#include <string>

namespace headroom::ctl {

std::string bash_completion(const ArgumentParser& app);
std::string zsh_completion(const ArgumentParser& app);
std::string fish_completion(const ArgumentParser& app);

// Hidden in --help: make install calls it. `app` must outlive the command.
void add_completion(ArgumentParser& app, CliCommand& chosen);

}  // namespace headroom::ctl
