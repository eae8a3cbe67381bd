// SPDX-License-Identifier: Apache-2.0
// headroom.ladder: what is tried before a pod is evicted for memory.
#pragma once

#include "config/yaml/section.h"

#include <headroom/policy.h>

#include <string>
#include <vector>

namespace headroom::config {

// As their paths below headroom.ladder: "reclaim.margin".
std::vector<std::string> ladder_keys();

void read_ladder(const Section& headroom, Policy& policy);

}  // namespace headroom::config
