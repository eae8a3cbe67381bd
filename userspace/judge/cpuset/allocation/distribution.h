// SPDX-License-Identifier: Apache-2.0
// Distribution: over which NUMA nodes a request is spread, and how much each of them gives, so that
// what is left on all nodes is as even as can be (kubelet: cm/cpumanager/cpu_assignment.go).
#pragma once

#include "judge/cpuset/allocation/take_cpus.h"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace headroom {

struct DistributionRequest {
  std::span<const int> left;  // CPUs left on each node that has any, in the order they are tried
  int count = 0;              // a multiple of group
  int group = 1;
  int fewest_nodes = 1;
};

struct Distribution {
  std::vector<std::size_t> nodes;  // indices into `left`, ascending
  int each = 0;                    // CPUs every one of them gives
  // What is over goes to these, one group at a time, in turn.
  std::vector<std::size_t> remainder;
};

// The kubelet's choice, without its search: of the least number of nodes that can give the request
// in groups, the subset that leaves the smallest standard deviation, the lexicographically first
// where several do. Absent: no subset can.
//
// The kubelet walks all subsets of nodes and, for each, all subsets that could take the remainder:
// 3^nodes, which 16 nodes already make unusable. What a node gives depends on the nodes before it
// only through three counts, so a table over these finds the same subset in about nodes^4 steps.
// Balance is compared exactly, as a sum of squares; the kubelet's rounding of the deviation to 3
// decimals could merge two balances only on machines of more than 1,000 CPUs.
std::optional<Distribution> distribute(const DistributionRequest& request, WorkCounter& work);

}  // namespace headroom
