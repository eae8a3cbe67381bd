// SPDX-License-Identifier: Apache-2.0
// headroomctl status: prints the state of the node once.
#pragma once

#include "ctl/common/cli_command.h"
#include "ctl/common/status_document.h"
#include "ctl/common/text_table.h"

#include <string>

namespace headroom::ctl {

// These parts are also shown by `top`.
std::string heading(const Status& status, const Screen& screen);
std::string threshold_table(const Status& status, const Screen& screen);
std::string condition_line(const Status& status, const Screen& screen);

std::string render_status(const Status& status, const Screen& screen);

void add_status(ArgumentParser& app, CliCommand& chosen);

}  // namespace headroom::ctl
