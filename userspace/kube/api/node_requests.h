// SPDX-License-Identifier: Apache-2.0
// Node requests: the requests to the API server about the node itself. Pure.
//
// The conditions have their own types, HeadroomMemoryPressure and so on. A kubelet writes its own
// MemoryPressure with every status, from its own reading, and would overwrite ours within seconds;
// it leaves unknown types alone. Conditions are sent by server-side apply: the list of conditions
// is a map by type, in which headroom owns only its own entries.
//
// Taints are a list that has one owner as a whole (listType=atomic), so apply would remove the
// taints of all other owners. Therefore the list is read, changed and written back with its
// resource version, as the node controllers do. The taints have their own keys too:
// node.kubernetes.io/memory-pressure is removed from a node whose kubelet reports no pressure.
#pragma once

#include "kube/http_client.h"

#include <headroom/result.h>
#include <headroom/signal.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace headroom::kube {

struct NodeCondition {
  std::optional<bool> holds;  // absent: unknown, because headroomd does not report
  std::string since;          // RFC 3339
  friend bool operator==(const NodeCondition&, const NodeCondition&) = default;
};
// Indexed by Condition.
using NodeConditions = std::array<NodeCondition, kConditions>;

// Reads the conditions from the v1 Node that headroomd writes to its status file.
Result<NodeConditions> conditions_of(const std::string& node_json);

std::string_view condition_type(Condition condition);  // "HeadroomMemoryPressure"
std::string_view taint_key(Condition condition);       // "headroom.io/memory-pressure"

// `heartbeat`: RFC 3339. Without `conditions`, headroom's conditions are removed.
HttpRequest conditions_apply(const std::string& node_name,
                             const std::optional<NodeConditions>& conditions,
                             const std::string& heartbeat);

HttpRequest node_get(const std::string& node_name);

// The request that adds missing taints of headroom and removes surplus ones; absent if the taints
// are correct. `node` is the server's response to node_get(). A taint whose condition is unknown
// stays as it is. Without `conditions`, headroom's taints are removed.
Result<std::optional<HttpRequest>> taints_patch(const std::string& node_name,
                                                const std::string& node,
                                                const std::optional<NodeConditions>& conditions);

}  // namespace headroom::kube
