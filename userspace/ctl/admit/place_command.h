// SPDX-License-Identifier: Apache-2.0
// headroomctl place: on which node a pod belongs, from files alone.
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

// 0: a node was chosen; 1: none will do; 2: a file is wrong.
void add_place(CLI::App& app, CliCommand& chosen);

}  // namespace headroom::ctl
