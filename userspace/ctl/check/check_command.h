// SPDX-License-Identifier: Apache-2.0
// headroomctl check: reports whether headroom works on this host, and what to do if parts do not.
#pragma once

#include "ctl/common/cli_command.h"

namespace headroom::ctl {

// Exit status 0: it works; 1: something essential is missing.
void add_check(ArgumentParser& app, CliCommand& chosen);

}  // namespace headroom::ctl
