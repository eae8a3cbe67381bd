// SPDX-License-Identifier: Apache-2.0
// NodeStatus: the node as schedulers see it: its capacity, allocatable resources, pods and
// conditions. Has the shape of a v1 Node.
#pragma once

#include "judge/admission/node_state.h"

#include <headroom/placement.h>
#include <headroom/pod.h>
#include <headroom/signal.h>

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace headroom::report {

using Seconds = std::chrono::sys_seconds;

struct ConditionStatus {
  bool holds = false;
  Seconds since;  // when it last turned; or when this daemon first looked
};

// Never changed once made: its readers share it.
struct NodeStatus {
  NodeState state;        // allocatable as counts, the operator's taints, the active pods
  ResourceList capacity;  // what is not known is absent
  ResourceList allocatable;
  ResourceList reserved;   // what of the capacity is kept from pods
  ResourceList requested;  // of the active pods, their number as "pods"
  ResourceList limits;     // of the active pods, as far as they have any
  std::array<ConditionStatus, kConditions> conditions{};
  std::string error;  // why allocatable is not known; "" if it is
  Seconds at;         // when this was put together
};
using NodeStatusRef = std::shared_ptr<const NodeStatus>;

// The kubelet's words for a condition: "KubeletHasSufficientMemory", "kubelet has sufficient memory
// available".
struct ConditionText {
  std::string_view reason;
  std::string_view message;
};
ConditionText kubelet_condition_text(Condition condition, bool holds);

// "2026-11-21T09:30:00Z"
std::string rfc3339(Seconds at);

// A v1 Node with one section more, `headroom`: the active pods with their requests, which a Node
// says nothing about.
nlohmann::ordered_json node_json(const NodeStatus& status);

}  // namespace headroom::report
