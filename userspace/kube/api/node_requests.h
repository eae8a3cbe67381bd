// SPDX-License-Identifier: Apache-2.0
// Node requests: the requests to the API server about the node itself. Pure.
//
// The conditions have types of their own, HeadroomMemoryPressure and so on: a kubelet writes its
// own MemoryPressure with every status, from its own reading, and would overwrite ours within
// seconds; types that it does not know it leaves alone. They are sent by server-side apply: in the
// list of conditions, a map by type, headroom owns only its own.
//
// Taints are a list with one owner as a whole (listType=atomic), so apply would remove those of all
// others: they are read, changed and written back with their resource version, as the node
// controllers do. Their keys are our own too: node.kubernetes.io/memory-pressure is removed from a
// node whose kubelet reports no pressure.
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
  std::optional<bool> holds;  // absent: headroomd does not report
  std::string since;          // RFC 3339
  friend bool operator==(const NodeCondition&, const NodeCondition&) = default;
};
// By Condition.
using NodeConditions = std::array<NodeCondition, kConditions>;

// Of the v1 Node that headroomd writes down.
Result<NodeConditions> conditions_of(const std::string& node_json);

std::string_view condition_type(Condition condition);  // "HeadroomMemoryPressure"
std::string_view taint_key(Condition condition);       // "headroom.io/memory-pressure"

// `heartbeat`: RFC 3339. Without conditions: ours are taken back.
HttpRequest conditions_apply(const std::string& node_name,
                             const std::optional<NodeConditions>& conditions,
                             const std::string& heartbeat);

HttpRequest node_get(const std::string& node_name);

// What the node's taints lack, or have too many: nothing when they are right. `node` is what the
// server answered; what is not known is as it was. Without conditions: ours are taken off.
Result<std::optional<HttpRequest>> taints_patch(const std::string& node_name,
                                                const std::string& node,
                                                const std::optional<NodeConditions>& conditions);

}  // namespace headroom::kube
