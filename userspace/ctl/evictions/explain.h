// SPDX-License-Identifier: Apache-2.0
// explain(): describes the record of an eviction in plain English. Pure: only strings are made.
#pragma once

#include "ctl/common/text_table.h"

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace headroom::ctl {

// Describes the ranking in an eviction's record: the rule, the candidates, and why each was chosen
// or not.

// The kubelet's rule for the signal. Empty if no pod was ranked.
std::vector<std::string> rule_lines(const nlohmann::json& record);
// The candidates, first to be evicted first. "" if no pod was ranked.
std::string ranking_table(const nlohmann::json& record, const Screen& screen);
std::vector<std::string> not_chosen_lines(const nlohmann::json& record);

// `flight_recording`: the document of the minute before the eviction; null if there is none.
std::string explain(const nlohmann::json& record, const nlohmann::json& flight_recording,
                    const Screen& screen);

}  // namespace headroom::ctl
