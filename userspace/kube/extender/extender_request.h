// SPDX-License-Identifier: Apache-2.0
// The bodies of kube-scheduler's requests to an extender and of the answers, as
// k8s.io/kube-scheduler/extender/v1 has them. Pure; a hostile body is refused, within
// kMaxExtenderBody and kMaxExtenderDepth.
#pragma once

#include "base/clock.h"
#include "kube/scheduling/node_summary.h"

#include <headroom/result.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace headroom::kube {

inline constexpr std::size_t kMaxExtenderBody = std::size_t{16} << 20;  // bytes
inline constexpr std::size_t kMaxExtenderDepth = 64;                    // of nested JSON
inline constexpr std::size_t kMaxExtenderNodes = 20'000;
inline constexpr std::size_t kMaxNodeName = 253;  // bytes; RFC 1123 subdomain

// ExtenderArgs, without the pod: the score is the node's own.
struct ExtenderArgs {
  std::vector<std::string> names;
  // With nodeCacheCapable: false the scheduler sends whole nodes; they are sent back as they came.
  // Parallel to `names`; empty: names alone.
  std::vector<nlohmann::json> nodes;
  bool has_nodes = false;
};
Result<ExtenderArgs> extender_args_of(const std::string& body);

// Calls `use` with the summary of a node, or null.
using UseSummary = std::function<void(const NodeSummary* summary)>;
// Finds the summary of a node by its name, for as long as `use` runs.
using FindSummary = std::function<void(const std::string& node, const UseSummary& use)>;

// ExtenderFilterResult: the nodes that may take a pod, and why the others may not.
std::string filter_answer(const ExtenderArgs& args, const FindSummary& find, WallTime now);
// HostPriorityList, with a score of each node.
std::string prioritize_answer(const ExtenderArgs& args, const FindSummary& find, WallTime now);

}  // namespace headroom::kube
