// SPDX-License-Identifier: Apache-2.0
// Draws the last minute before an eviction: the signal, and the memory that pods held. Pure: only
// strings are made.
#pragma once

#include "ctl/common/text_table.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace headroom::ctl {

// "" if the document is null or has no value of the signal.
std::string render_flight_recording(const nlohmann::json& flight_recording, std::string_view signal,
                                    const Screen& screen);

// One mark for each value, scaled from the least to the most of them; a blank if a value is absent.
std::string sparkline(const std::vector<std::optional<std::int64_t>>& values);

}  // namespace headroom::ctl
