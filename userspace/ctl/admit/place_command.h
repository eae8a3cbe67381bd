// SPDX-License-Identifier: Apache-2.0
// headroomctl place: chooses a node for a pod, from files only.
#pragma once

#include "ctl/common/cli_command.h"
#include "ctl/common/text_table.h"
#include "judge/admission/scheduler.h"

#include <span>
#include <string>

namespace headroom::ctl {

std::string render_places(const Pod& pod, std::span<const NodeState> nodes,
                          const PlacementResult& places, const Screen& screen);
std::string places_json(const Pod& pod, std::span<const NodeState> nodes,
                        const PlacementResult& places);

// Exit status 0: a node was chosen; 1: no node is suitable; 2: a file is invalid.
void add_place(ArgumentParser& app, CliCommand& chosen);

}  // namespace headroom::ctl
