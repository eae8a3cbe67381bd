// SPDX-License-Identifier: Apache-2.0
// explain(): describes the record of an eviction in plain English. Pure: only strings are made.
#pragma once

#include "ctl/common/text_table.h"

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace headroom::ctl {

// `flight_recording`: the document of the minute before the eviction; null if there is none.
std::string explain(const nlohmann::json& record, const nlohmann::json& flight_recording,
                    const Screen& screen);

}  // namespace headroom::ctl
