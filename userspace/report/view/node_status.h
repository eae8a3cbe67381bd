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
  Seconds since;  // last transition, or the first check by this daemon
};

// Immutable: readers share it.
struct NodeStatus {
  NodeState state;        // allocatable as counts, the operator's taints, the active pods
  ResourceList capacity;  // unknown values are absent
  ResourceList allocatable;
  ResourceList reserved;   // the part of the capacity that is not for pods
  ResourceList requested;  // of the active pods, their number as "pods"
  ResourceList limits;     // of the active pods that have limits
  std::array<ConditionStatus, kConditions> conditions{};
  std::string error;  // why allocatable is unknown; "": it is known
  Seconds at;         // creation time
};
using NodeStatusRef = std::shared_ptr<const NodeStatus>;

// The kubelet's words for a condition: "KubeletHasSufficientMemory", "kubelet has sufficient memory
// available".
struct ConditionText {
  std::string_view reason;
  std::string_view message;
};
ConditionText kubelet_condition_text(Condition condition, bool holds);

// A v1 Node with an additional section `headroom`: the active pods with their requests, which a
// Node does not contain.
nlohmann::ordered_json node_json(const NodeStatus& status);

}  // namespace headroom::report
