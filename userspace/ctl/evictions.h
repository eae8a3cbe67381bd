// SPDX-License-Identifier: Apache-2.0
// headroomctl evictions: the audit log, read back.
#pragma once

#include "ctl/command.h"
#include "ctl/paint.h"

#include <cstddef>
#include <deque>
#include <string>

namespace headroom::ctl {

// One row for each line; `unreadable` counts those that are no record.
std::string render_evictions(const std::deque<std::string>& lines, const Screen& screen,
                             std::size_t& unreadable);

void add_evictions(CLI::App& app, Command& chosen);

}  // namespace headroom::ctl
