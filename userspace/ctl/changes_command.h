// SPDX-License-Identifier: Apache-2.0
// headroomctl changes: what headroomd has changed on the node, with the original values.
#pragma once

#include "ctl/common/commands.h"
#include "ctl/common/text_table.h"
#include "ctl/ledger.h"

#include <string>
#include <vector>

namespace headroom::ctl {

std::string render_changes(const std::vector<Change>& changes, const Screen& screen);
std::string changes_json(const std::vector<Change>& changes);

// Exit status 0; 1: a file of the ledger cannot be read.
void add_changes(ArgumentParser& app, CliCommand& chosen);

}  // namespace headroom::ctl
