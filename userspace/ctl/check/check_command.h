// SPDX-License-Identifier: Apache-2.0
// Prints the findings of a check: as a table with advice below it, or as JSON. Pure: only strings
// are made.
#pragma once

#include "ctl/check/findings.h"
#include "ctl/common/text_table.h"

#include <string>
#include <vector>

namespace headroom::ctl::check {

std::string render(const std::string& kernel, const std::vector<Finding>& findings,
                   const Screen& screen);
std::string as_json(const std::string& kernel, const std::vector<Finding>& findings);

}  // namespace headroom::ctl::check
