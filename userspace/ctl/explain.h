// SPDX-License-Identifier: Apache-2.0
// Explain: an eviction's record in plain words. Pure strings.
#pragma once

#include "ctl/paint.h"

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace headroom::ctl {

// `minute`: the document of its last minute; null: there is none.
std::string explain(const nlohmann::json& record, const nlohmann::json& minute,
                    const Screen& screen);

}  // namespace headroom::ctl
