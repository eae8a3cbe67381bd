// SPDX-License-Identifier: Apache-2.0
// Hints as the vectors write them.
#pragma once

#include "judge/cpuset/hints/cpu_hints.h"
#include "judge/cpuset/hints/hint_merge.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace headroom::vectors {

inline NumaHint hint_of(const nlohmann::json& object) {
  NumaHint hint{std::nullopt, object.at("preferred").get<bool>()};
  if (object.at("numa").is_null()) return hint;
  hint.nodes = NodeSet{};
  for (const auto& node : object.at("numa"))
    hint.nodes = *hint.nodes | NodeSet::of(node.get<int>());
  return hint;
}

inline HintList hints_of(const nlohmann::json& list) {
  HintList hints;
  for (const auto& each : list)
    hints.push_back(hint_of(each));
  return hints;
}

inline std::string written(const NumaHint& hint) {
  std::string nodes = hint.nodes ? "" : "any ";
  if (hint.nodes)
    for (const int node : hint.nodes->ids())
      nodes += std::to_string(node) + " ";
  return nodes + (hint.preferred ? "preferred" : "not preferred");
}

inline std::vector<std::string> written(const HintList& hints) {
  std::vector<std::string> all;
  for (const NumaHint& hint : hints)
    all.push_back(written(hint));
  return all;
}

// As in topologyManagerPolicy; absent: no policy has this name.
inline std::optional<TopologyPolicy> topology_policy_named(std::string_view text) {
  for (const auto policy : {TopologyPolicy::kNone, TopologyPolicy::kBestEffort,
                            TopologyPolicy::kRestricted, TopologyPolicy::kSingleNumaNode})
    if (name(policy) == text) return policy;
  return std::nullopt;
}

}  // namespace headroom::vectors
