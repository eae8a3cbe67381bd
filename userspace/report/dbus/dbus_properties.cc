// SPDX-License-Identifier: Apache-2.0
#include "report/dbus/dbus_properties.h"

#include "report/status/status_json.h"

#include <algorithm>

namespace headroom::report {
namespace {

std::string_view source_of(const Sources& sources) {
  const auto serves = [&](std::string_view source) {
    return std::find(sources.begin(), sources.end(), source) != sources.end();
  };
  if (serves("bpf")) return serves("files") ? "hybrid" : "bpf";
  return serves("files") ? "files" : "";
}

}  // namespace

BusProperties properties_of(const NodeView& node) {
  return {name(node.mode), node.conditions, source_of(node.sources)};
}

std::vector<const char*> changed_properties(const BusProperties& before, const BusProperties& now) {
  std::vector<const char*> names;
  if (before.mode != now.mode) names.push_back("Mode");
  for (std::size_t i = 0; i < kConditions; ++i)
    if (before.conditions[i] != now.conditions[i]) names.push_back(kConditionNames[i].data());
  if (before.source != now.source) names.push_back("Source");
  return names;
}

}  // namespace headroom::report
