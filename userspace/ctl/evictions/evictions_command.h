// SPDX-License-Identifier: Apache-2.0
// headroomctl evictions: prints the audit log as a table.
#pragma once

#include "ctl/common/cli_command.h"
#include "ctl/common/text_table.h"

#include <cstddef>
#include <deque>
#include <string>

namespace headroom::ctl {

// One row for each line. `unreadable` is increased for each line that is not a record.
std::string render_evictions(const std::deque<std::string>& lines, const Screen& screen,
                             std::size_t& unreadable);

void add_evictions(ArgumentParser& app, CliCommand& chosen);

}  // namespace headroom::ctl
