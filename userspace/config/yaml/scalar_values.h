// SPDX-License-Identifier: Apache-2.0
// Scalars of the configuration that have a form: a share ("20%"), an absolute path, a positive
// duration.
#pragma once

#include "config/yaml/section.h"

#include <headroom/units.h>

#include <filesystem>
#include <optional>
#include <string_view>

namespace headroom::config {

// A duration in the configuration that must be more than nothing.

// `duration` stays as it was where the key is not there, or was complained of.
inline void read_positive_duration(const Section& section, std::string_view key,
                                   Duration& duration) {
  const auto read = section.duration(key);
  if (!read) return;
  if (*read > Duration::zero())
    duration = *read;
  else
    section.add_error(key, "must be more than zero");
}

// read_absolute_path(): a path of the configuration. It must not depend on a daemon's working
// directory, so a relative path is an error.

inline void read_absolute_path(const Section& section, std::string_view key,
                               std::filesystem::path& path) {
  const auto text = section.string(key);
  if (!text) return;
  if (text->starts_with("/"))
    path = *text;
  else
    section.add_error(key, "expected an absolute path, found \"" + *text + "\"");
}

// 0.2 for "20%"; absent where it is not there, or was complained of. `example` is for the
// complaint.
std::optional<float> read_percentage(const Section& section, std::string_view key,
                                     std::string_view example);

}  // namespace headroom::config
