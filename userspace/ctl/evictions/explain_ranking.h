// SPDX-License-Identifier: Apache-2.0
// The ranking of an eviction's record: the rule, the candidates, and why each was chosen or spared.
#pragma once

#include "ctl/common/text_table.h"

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace headroom::ctl {

// The kubelet's rule for the signal. Empty: no pod was ranked.
std::vector<std::string> rule_lines(const nlohmann::json& record);
// First to be evicted first. "": no pod was ranked.
std::string ranking_table(const nlohmann::json& record, const Screen& screen);
std::vector<std::string> not_chosen_lines(const nlohmann::json& record);

}  // namespace headroom::ctl
