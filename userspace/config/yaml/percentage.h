// SPDX-License-Identifier: Apache-2.0
// A share of something in the configuration: "20%", more than nothing and less than all.
#pragma once

#include "config/yaml/section.h"

#include <optional>
#include <string_view>

namespace headroom::config {

// 0.2 for "20%"; absent where it is not there, or was complained of. `example` is for the
// complaint.
std::optional<float> read_percentage(const Section& section, std::string_view key,
                                     std::string_view example);

}  // namespace headroom::config
