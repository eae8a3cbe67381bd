// SPDX-License-Identifier: Apache-2.0
// BusProperties: the properties of the node on the bus, and which of them changed. Pure.
#pragma once

#include "report/view/node_view.h"

#include <array>
#include <string_view>
#include <vector>

namespace headroom::report {

struct BusProperties {
  std::string_view mode;
  std::array<bool, kConditions> conditions{};
  // The source of cgroup readings: "bpf", "files", both: "hybrid"; "" before the first.
  std::string_view source;
  friend bool operator==(const BusProperties&, const BusProperties&) = default;
};

BusProperties properties_of(const NodeView& node);

// By the names they have on the bus.
std::vector<const char*> changed_properties(const BusProperties& before, const BusProperties& now);

}  // namespace headroom::report
