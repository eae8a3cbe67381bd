// SPDX-License-Identifier: Apache-2.0
// Place: on which of several nodes one pod belongs, by the kube-scheduler's rules and in its
// integer arithmetic (pkg/scheduler/framework/plugins, v1.36): filter, score, choose.
#pragma once

#include "judge/admission/node_state.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace headroom {

// Of the default profile, those that one node's state can answer.
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
  std::vector<std::string> reasons;  // why not; none: feasible
  std::optional<Scores> scores;      // of a feasible node
};

struct PlacementResult {
  std::vector<NodeCandidate> nodes;  // in the order given
  // The highest total; the scheduler draws lots among equals, here the first name wins.
  std::optional<std::size_t> chosen;
};

PlacementResult select_node(const Pod& pod, std::span<const NodeState> nodes);

// Why a node is out of the question: all reasons, in the scheduler's words.
std::vector<std::string> filter(const Pod& pod, const PodOnNode& wanted, const NodeState& node);

}  // namespace headroom
