// SPDX-License-Identifier: Apache-2.0
// headroom.pressure: thresholds on time lost to the node's own shortage.
#pragma once

#include "config/config.h"
#include "config/yaml/section.h"

#include <span>
#include <string_view>

namespace headroom::config {

std::span<const std::string_view> memory_pressure_keys();

// `headroom` is the section it is part of.
void read_pressure(const Section& headroom, Config& config);

}  // namespace headroom::config
