// SPDX-License-Identifier: Apache-2.0
// read_absolute_path(): a path of the configuration. It must not depend on a daemon's working
// directory, so a relative path is an error.
#pragma once

#include "config/yaml/section.h"

#include <filesystem>
#include <string_view>

namespace headroom::config {

inline void read_absolute_path(const Section& section, std::string_view key,
                               std::filesystem::path& path) {
  const auto text = section.string(key);
  if (!text) return;
  if (text->starts_with("/"))
    path = *text;
  else
    section.add_error(key, "expected an absolute path, found \"" + *text + "\"");
}

}  // namespace headroom::config
