// SPDX-License-Identifier: Apache-2.0
// The last minute before an eviction, drawn: the signal, and who held what. Pure strings.
#pragma once

#include "ctl/common/text_table.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace headroom::ctl {

// "": the document is null, or knows nothing of the signal.
std::string render_flight_recording(const nlohmann::json& flight_recording, std::string_view signal,
                                    const Screen& screen);

// One mark for each value, from the least to the most of them; where there is none a blank.
std::string sparkline(const std::vector<std::optional<std::int64_t>>& values);

}  // namespace headroom::ctl
