// SPDX-License-Identifier: Apache-2.0
// headroomctl place: on which node a pod belongs, from files alone.
#pragma once

#include "ctl/command.h"
#include "ctl/paint.h"
#include "judge/admission/place.h"

#include <span>
#include <string>

namespace headroom::ctl {

std::string render_places(const Pod& pod, std::span<const NodeState> nodes, const Places& places,
                          const Screen& screen);
std::string places_json(const Pod& pod, std::span<const NodeState> nodes, const Places& places);

// 0: a node was chosen; 1: none will do; 2: a file is wrong.
void add_place(CLI::App& app, Command& chosen);

}  // namespace headroom::ctl
