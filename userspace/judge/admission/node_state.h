// SPDX-License-Identifier: Apache-2.0
// NodeState: the input of admission and of the scheduler's rules: a node's allocatable resources,
// its pods, taints and conditions.
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

// ResourceCounts: an amount of each resource by its name, in the units of admission and the
// scheduler: "cpu" in thousandths, all others whole ("memory" in bytes).

using ResourceCounts = std::map<std::string, std::int64_t, std::less<>>;

// Rounded up, as the kubelet rounds a pod's sums.
ResourceCounts counts_of(const ResourceList& list);
Quantity quantity_of(std::string_view resource, std::int64_t count);

std::int64_t of(const ResourceCounts& counts, std::string_view resource);  // absent: none
void add(ResourceCounts& sum, const ResourceCounts& more);                 // saturates

// "nvidia.com/gpu": an extended resource, known only to nodes that have it.
bool is_extended(std::string_view resource);

// A pod on a node, or about to be placed there, reduced to what admission needs.
struct PodOnNode {
  std::string pod_namespace{};
  std::string name{};
  std::string uid{};
  QosClass qos = QosClass::kBestEffort;
  std::int32_t priority = 0;
  bool critical = false;      // static, or of system-critical priority
  ResourceCounts requests{};  // overhead included
  ResourceCounts limits{};    // of the containers that have one
  // The requests for scoring: a container without a request of cpu or memory counts with a small
  // default, so that pods without requests are spread as well.
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
  std::vector<PodOnNode> pods{};               // active pods: a pod that has ended uses nothing
  friend bool operator==(const NodeState&, const NodeState&) = default;
};

// The sum of the requests of all pods except that one (by its uid), with their number as "pods".
ResourceCounts requested(const NodeState& node, std::string_view excluded_uid = {});

// The sum of the limits of all pods, as far as they have limits.
ResourceCounts total_limits(const NodeState& node);

// The operator's taints and those of the conditions.
std::vector<Taint> all_taints(const NodeState& node);

// Whether a node has enough resources left for a pod.

struct Shortage {
  std::string resource;
  std::int64_t requested = 0;
  std::int64_t used = 0;
  std::optional<std::int64_t> capacity;  // absent: the capacity is not known

  // How much must be freed; absent: unknown.
  std::optional<std::int64_t> missing() const;
  friend bool operator==(const Shortage&, const Shortage&) = default;
};

// How extended resources that the node does not have are treated.
enum class UnknownResources : std::uint8_t {
  kUnknownIsShort,  // the scheduler: no node like that
  kIgnoreUnknown,   // the kubelet: another component is responsible for it, such as the cluster
};

// Every resource that is not sufficient: "pods" first, then by name. A resource that the pod does
// not request is never short, however overcommitted it is.
std::vector<Shortage> shortages(const PodOnNode& pod, const NodeState& node,
                                UnknownResources unknown_resources);

}  // namespace headroom
