// SPDX-License-Identifier: Apache-2.0
// Hints: which sets of NUMA nodes could give what is asked, and which of them one would prefer
// (kubelet: cm/cpumanager/policy_static.go).
#pragma once

#include "judge/cpuset/allocation/take_cpus.h"

#include <headroom/cpuset.h>
#include <headroom/topology.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace headroom {

struct NumaHint {
  std::optional<NodeSet> nodes{};  // absent: any
  bool preferred = false;
  friend bool operator==(const NumaHint&, const NumaHint&) = default;
};
using HintList = std::vector<NumaHint>;

// What one provider (CPUs, memory, devices) says, by resource. No list: it does not care. An empty
// list: it cannot be had anywhere.
using ProviderHints = std::map<std::string, std::optional<HintList>>;

struct HintRequest {
  int count = 0;
  CpuSet available{};
  CpuSet reusable{};  // must lie inside every hint
  bool align_by_socket = false;
};

// No more subsets of nodes than this are looked at: all there are of 16 nodes. The kubelet looks at
// all 2^nodes, and so refuses to start on more than 8.
inline constexpr int kMaxHintSubsets = (1 << 16) - 1;

// Narrow subsets first; empty where all nodes together have too few. Where there are more subsets
// than kMostHintSubsets the search starts at the narrowest that could do, and the nodes with most
// free CPUs are a hint whatever else was reached.
HintList cpu_hints(const Topology& topology, const HintRequest& request,
                   WorkCounter* work = nullptr);

}  // namespace headroom
