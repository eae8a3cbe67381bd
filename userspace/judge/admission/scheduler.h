// SPDX-License-Identifier: Apache-2.0
// Scheduler: chooses the node for one pod by the kube-scheduler's rules and in its integer
// arithmetic (pkg/scheduler/framework/plugins, v1.36): filter, score, choose.
#pragma once

#include "judge/admission/node_state.h"

#include <headroom/placement.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// Whether a pod may be placed on a node (selectors, affinity), and the node's scores as the kube-
// scheduler of 1.36 computes them: each 0 … 100, in its integer arithmetic.

// Whether a node matches what a pod requires: its name, labels, ports.

bool matches(const NodeTerm& term, const NodeState& node);

// nodeSelector and the required node affinity; the name is checked elsewhere.
bool selects(const Placement& placement, const NodeState& node);

// Whether two ports conflict: the same number and protocol, at the same address or at all
// addresses.
bool conflict(const HostPort& a, const HostPort& b);
// Whether all ports of the pod are free.
bool ports_free(const PodOnNode& pod, const NodeState& node);

inline constexpr std::int64_t kMaxNodeScore = 100;

struct ScoredResource {
  std::string_view name;
  std::int64_t weight = 1;
};
// The resources of the scheduler's default profile.
inline constexpr std::array<ScoredResource, 2> kScoredResources{{{"cpu", 1}, {"memory", 1}}};

// NodeResourcesFit, strategy LeastAllocated: the weighted mean of what would be left. Of the
// incoming pod its containers' requests count, not those of spec.resources.
std::int64_t least_allocated(const Pod& pod, const NodeState& node,
                             std::span<const ScoredResource> resources = kScoredResources);

// NodeResourcesBalancedAllocation: how much nearer to each other the pod brings the shares of the
// resources in use. 75: it changes nothing. Absent: the pod requests none of them, and the
// scheduler skips this score. Weights do not count.
std::optional<std::int64_t> balanced_allocation(
    const Pod& pod, const NodeState& node,
    std::span<const ScoredResource> resources = kScoredResources);

// A resource of a node, for the scores: in thousandths of a CPU, or bytes.
struct ResourceUse {
  std::int64_t requested = 0;  // of the pods on the node
  std::int64_t wanted = 0;     // of the incoming pod
  std::int64_t allocatable = 0;

  // Absent: the sum exceeds 64 bits.
  std::optional<std::int64_t> together() const {
    std::int64_t sum = 0;
    if (__builtin_add_overflow(requested, wanted, &sum)) return std::nullopt;
    return sum;
  }
};

// The same two scores of resources of equal weight, for a caller that keeps the sums itself.
std::int64_t least_allocated(std::span<const ResourceUse> uses);
std::int64_t balanced_allocation(std::span<const ResourceUse> uses);

// The scores of the default profile that depend on one node's state only.
struct Scores {
  static constexpr std::int64_t kMaxScore = 100;
  static constexpr std::int64_t kFitWeight = 1, kBalanceWeight = 1, kTaintWeight = 3,
                                kAffinityWeight = 2;

  std::int64_t least_allocated = 0;      // NodeResourcesFit
  std::int64_t balanced_allocation = 0;  // NodeResourcesBalancedAllocation; 0: it is skipped
  std::int64_t taint_toleration = 0;     // fewest PreferNoSchedule taints not tolerated
  std::int64_t node_affinity = 0;        // preferred terms that match

  std::int64_t total() const {
    return kFitWeight * least_allocated + kBalanceWeight * balanced_allocation +
           kTaintWeight * taint_toleration + kAffinityWeight * node_affinity;
  }
  friend bool operator==(const Scores&, const Scores&) = default;
};

struct NodeCandidate {
  std::vector<std::string> reasons;  // why the node is not feasible; empty: it is
  std::optional<Scores> scores;      // of a feasible node
};

struct PlacementResult {
  std::vector<NodeCandidate> nodes;  // in the order given
  // The node with the highest total; among equals the first by name (the scheduler chooses at
  // random).
  std::optional<std::size_t> chosen;
};

PlacementResult select_node(const Pod& pod, std::span<const NodeState> nodes);

// Why a node is not feasible: all reasons, in the scheduler's words.
std::vector<std::string> filter(const Pod& pod, const PodOnNode& wanted, const NodeState& node);

}  // namespace headroom
