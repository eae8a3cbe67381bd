// SPDX-License-Identifier: Apache-2.0
// headroomctl slices: the slices of the node, what they should be and what they are.
#pragma once

#include "ctl/common/cli_command.h"
#include "ctl/common/text_table.h"

#include <headroom/result.h>

#include <string>
#include <string_view>

namespace headroom::ctl {

// Of the status document.
Result<std::string> render_slices(std::string_view status, const Screen& screen);
// That part of it alone.
Result<std::string> slices_text(std::string_view status);

// Exit status 0: all slices are as configured, or mode off; 1: some are not; 3: no answer.
void add_slices(CLI::App& app, CliCommand& chosen);

}  // namespace headroom::ctl
