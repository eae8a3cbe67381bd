// SPDX-License-Identifier: Apache-2.0
// headroomctl taint: the node's taints, listed or edited.
#pragma once

#include "ctl/common/cli_command.h"
#include "ctl/common/text_table.h"

#include <headroom/result.h>

#include <string>
#include <string_view>

namespace headroom::ctl {

// From the status document: the taints, and which pods they evict and when.
Result<std::string> render_taints(std::string_view status, const Screen& screen);
// The same as JSON: {"taints", "taint_evictions"}.
Result<std::string> taints_json(std::string_view status);

// Exit status 0: done; 1: refused; 2: an edit cannot be parsed; 3: no answer.
void add_taint(ArgumentParser& app, CliCommand& chosen);

}  // namespace headroom::ctl
