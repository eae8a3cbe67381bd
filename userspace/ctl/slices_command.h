// SPDX-License-Identifier: Apache-2.0
// headroomctl slices: the slices of the node, with their desired and current values.
#pragma once

#include "ctl/common/cli_command.h"
#include "ctl/common/text_table.h"

#include <headroom/result.h>

#include <string>
#include <string_view>

namespace headroom::ctl {

// The slices in the status document, as tables.
Result<std::string> render_slices(std::string_view status, const Screen& screen);
// The slices in the status document, as JSON.
Result<std::string> slices_text(std::string_view status);

// Exit status 0: all slices are as configured, or the mode is off; 1: some are not; 3: no answer.
void add_slices(ArgumentParser& app, CliCommand& chosen);

}  // namespace headroom::ctl
