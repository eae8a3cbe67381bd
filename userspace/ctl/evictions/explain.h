// SPDX-License-Identifier: Apache-2.0
// Explain: an eviction's record in plain words. Pure strings.
#pragma once

#include "ctl/common/text_table.h"

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace headroom::ctl {

// `minute`: the document of its last minute; null: there is none.
std::string explain(const nlohmann::json& record, const nlohmann::json& flight_recording,
                    const Screen& screen);

}  // namespace headroom::ctl
