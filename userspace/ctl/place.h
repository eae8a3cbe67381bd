// SPDX-License-Identifier: Apache-2.0
// headroomctl place: on which node a pod belongs, from files alone.
#pragma once

#include "ctl/paint.h"
#include "judge/admission/place.h"

#include <span>
#include <string>
#include <vector>

namespace headroom::ctl {

struct PlaceOptions {
  std::string file;                // "-": standard input
  std::vector<std::string> nodes;  // node status files
  bool json = false;
};

std::string render_places(const Pod& pod, std::span<const NodeState> nodes, const Places& places,
                          const Screen& screen);
std::string places_json(const Pod& pod, std::span<const NodeState> nodes, const Places& places);

// 0: a node was chosen; 1: none will do; 2: a file is wrong.
int run_place(const PlaceOptions& options);

}  // namespace headroom::ctl
