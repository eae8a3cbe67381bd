// SPDX-License-Identifier: Apache-2.0
// Renames the fields of eviction records that headroomd 0.1 and earlier wrote, so that a log that
// began before an update is read whole. Records of this version stay as they are.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace headroom::report {

// Renames in place; a record that is not an object stays as it is.
void rename_old_fields(nlohmann::json& record);

// The same for a line of the log, without its newline. Text that is not JSON stays as it is.
std::string with_new_fields(std::string line);

}  // namespace headroom::report
