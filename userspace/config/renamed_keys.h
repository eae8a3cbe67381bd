// SPDX-License-Identifier: Apache-2.0
// The configuration keys that were renamed in 0.1: the old names are accepted, with a warning,
// until 0.2.
#pragma once

#include "config/yaml/complaint.h"
#include "config/yaml/yaml.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::config {

struct RenamedKey {
  std::string_view map;       // "headroom.disk": where both names stand
  std::string_view old_name;  // "measureEvery"
  std::string_view new_name;  // "measurePeriod"
};
std::span<const RenamedKey> renamed_keys();

// Gives the old keys of one document their new names. Each is a warning that names file and line;
// both names at once are an error.
void rename_old_keys(yaml::Node& document, const std::string& file, Diagnostics& diagnostics,
                     std::vector<std::string>& warnings);

}  // namespace headroom::config
