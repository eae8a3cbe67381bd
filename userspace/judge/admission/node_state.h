// SPDX-License-Identifier: Apache-2.0
// NodeState: a node as admission and the scheduler's rules see it: its allocatable resources, its
// pods, its taints and conditions.
#pragma once

#include <headroom/placement.h>
#include <headroom/pod.h>
#include <headroom/signal.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// Counts: so much of each resource by its name, as admission and the scheduler add them up: "cpu"
// in thousandths, all else whole ("memory" in bytes).

using ResourceCounts = std::map<std::string, std::int64_t, std::less<>>;

// Rounded up, as the kubelet rounds a pod's sums.
ResourceCounts counts_of(const ResourceList& list);
Quantity quantity_of(std::string_view resource, std::int64_t count);

std::int64_t of(const ResourceCounts& counts, std::string_view resource);  // absent: none
void add(ResourceCounts& sum, const ResourceCounts& more);                 // saturates

// "nvidia.com/gpu": an extended resource, known only to nodes that have it.
bool is_extended(std::string_view resource);

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

// Whether a node has enough resources left for a pod.

struct Shortage {
  std::string resource;
  std::int64_t requested = 0;
  std::int64_t used = 0;
  std::optional<std::int64_t> capacity;  // absent: how much there is to give is not known

  // How much must be freed; nothing where that is not known.
  std::optional<std::int64_t> missing() const;
  friend bool operator==(const Shortage&, const Shortage&) = default;
};

// What becomes of extended resources that the node does not know.
enum class UnknownResources : std::uint8_t {
  kUnknownIsShort,  // the scheduler: no node like that
  kIgnoreUnknown,   // the kubelet: another component is responsible for it, such as the cluster
};

// Every resource that does not suffice: "pods" first, then by name. What a pod asks nothing of, it
// does not lack, however overcommitted.
std::vector<Shortage> shortages(const PodOnNode& pod, const NodeState& node,
                                UnknownResources unknown_resources);

}  // namespace headroom
