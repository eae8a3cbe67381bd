// SPDX-License-Identifier: Apache-2.0
// NodeState: a node as admission and the scheduler's rules see it: its allocatable resources, its
// pods, its taints and conditions.
#pragma once

#include "judge/admission/resource_counts.h"

#include <headroom/placement.h>
#include <headroom/pod.h>
#include <headroom/signal.h>

#include <array>
#include <string>
#include <vector>

namespace headroom {

// A pod on a node, or on its way there, reduced to what others must know of it.
struct PodOnNode {
  std::string pod_namespace{};
  std::string name{};
  std::string uid{};
  QosClass qos = QosClass::kBestEffort;
  std::int32_t priority = 0;
  bool critical = false;      // static, or of system-critical priority
  ResourceCounts requests{};  // overhead included
  ResourceCounts limits{};    // of those of its containers that have one
  // The requests again, where a container that asks for no cpu or memory counts for a little: what
  // scores are made of, so that pods asking for nothing still spread.
  ResourceCounts scored_requests{};
  std::vector<HostPort> host_ports{};
  friend bool operator==(const PodOnNode&, const PodOnNode&) = default;
};
PodOnNode on_node(const Pod& pod);

// The same as PodOnNode::scored_requests of a pod that is not on a node yet, all resources: without
// the requests of spec.resources (the scheduler's, 1.36).
ResourceCounts incoming_scored_requests(const Pod& pod);

struct NodeState {
  std::string name{};
  Labels labels{};
  ResourceCounts allocatable{};  // "pods" among them; a resource that is not known is absent
  std::vector<Taint> taints{};   // the operator's
  std::array<bool, kConditions> conditions{};  // each a taint as well
  bool unschedulable = false;                  // cordoned
  std::vector<PodOnNode> pods{};               // active: a pod that has ended holds nothing
  friend bool operator==(const NodeState&, const NodeState&) = default;
};

// What all pods but that one (by its uid) were promised, their number as "pods".
ResourceCounts requested(const NodeState& node, std::string_view excluded_uid = {});

// What all pods may use at the most, as far as they are limited.
ResourceCounts total_limits(const NodeState& node);

// The operator's and the conditions'.
std::vector<Taint> all_taints(const NodeState& node);

}  // namespace headroom
