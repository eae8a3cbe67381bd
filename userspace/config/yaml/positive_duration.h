// SPDX-License-Identifier: Apache-2.0
// A duration in the configuration that must be more than nothing.
#pragma once

#include "config/yaml/section.h"

#include <headroom/units.h>

#include <string_view>

namespace headroom::config {

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

}  // namespace headroom::config
