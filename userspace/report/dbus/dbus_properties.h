// SPDX-License-Identifier: Apache-2.0
// BusProperties: what the bus shows of the node, and which of it is no longer so. Pure.
#pragma once

#include "report/view/node_view.h"

#include <array>
#include <string_view>
#include <vector>

namespace headroom::report {

struct BusProperties {
  std::string_view mode;
  std::array<bool, kConditions> conditions{};
  // What cgroups are read through: "bpf", "files", both: "hybrid"; "" while nothing is.
  std::string_view source;
  friend bool operator==(const BusProperties&, const BusProperties&) = default;
};

BusProperties properties_of(const NodeView& node);

// By the names they have on the bus.
std::vector<const char*> changed_properties(const BusProperties& before, const BusProperties& now);

}  // namespace headroom::report
