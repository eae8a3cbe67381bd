// SPDX-License-Identifier: Apache-2.0
// Whether a pod may be placed on a node (selectors, affinity), and the node's scores as the kube-
// scheduler of 1.36 computes them: each 0 … 100, in its integer arithmetic.
#pragma once

#include "judge/admission/node_state.h"

#include <headroom/placement.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace headroom {

// Whether a node is one a pod asks for: its name, labels, ports.

bool matches(const NodeTerm& term, const NodeState& node);

// nodeSelector and the required node affinity; the name is asked for elsewhere.
bool selects(const Placement& placement, const NodeState& node);

// One port cannot be had twice: equal in number and protocol, at one address or at all of them.
bool conflict(const HostPort& a, const HostPort& b);
// Whether all the pod's are free.
bool ports_free(const PodOnNode& pod, const NodeState& node);

inline constexpr std::int64_t kMaxNodeScore = 100;

struct ScoredResource {
  std::string_view name;
  std::int64_t weight = 1;
};
// Of the scheduler's default profile.
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

}  // namespace headroom
