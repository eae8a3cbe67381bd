// SPDX-License-Identifier: Apache-2.0
// read_quantities(): a map of resources, as requests, limits and their like are.
#pragma once

#include "config/yaml/section.h"

#include <headroom/pod.h>

#include <string_view>

namespace headroom::observe {

// Those that are wrong are complained of and left out.
inline ResourceList read_quantities(const config::Section& parent, std::string_view key) {
  ResourceList list;
  const auto section = parent.map(key);
  if (!section) return list;
  for (const config::yaml::Entry& entry : section->entries()) {
    const auto quantity = section->quantity(entry);
    if (!quantity) continue;
    if (quantity->sign() < 0)
      section->add_error(entry, "must not be negative, found " + quantity->canonical());
    else
      list.emplace(entry.key, *quantity);
  }
  return list;
}

}  // namespace headroom::observe
