// SPDX-License-Identifier: Apache-2.0
// headroomctl record: what headroomd is told and decides, into a file.
#pragma once

#include "ctl/command.h"

namespace headroom::ctl {

void add_record(CLI::App& app, Command& chosen);

}  // namespace headroom::ctl
