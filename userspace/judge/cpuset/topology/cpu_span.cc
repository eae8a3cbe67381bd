// SPDX-License-Identifier: Apache-2.0
#include "judge/cpuset/topology/cpu_span.h"

#include <algorithm>

namespace headroom {
namespace {

int groups_with(const Topology& topology, Level level, const CpuSet& cpus) {
  CpuSet groups;  // indices: a bitset is one, whatever it counts
  for (const Cpu cpu : cpus)
    groups.insert(static_cast<Cpu>(topology.group_of(level, cpu)));
  return groups.size();
}

}  // namespace

CpuSpread cpu_spread(const Topology& topology, const CpuSet& cpus) {
  const CpuSet known = cpus & topology.cpus();
  return {.numa_nodes = groups_with(topology, Level::kNuma, known),
          .sockets = groups_with(topology, Level::kSocket, known),
          .caches = groups_with(topology, Level::kUncore, known),
          .cores = groups_with(topology, Level::kCore, known)};
}

int count_whole_cores(const Topology& topology, const CpuSet& free) {
  return static_cast<int>(
      std::ranges::count_if(topology.groups(Level::kCore),
                            [&](const CpuGroup& core) { return core.cpus.subset_of(free); }));
}

int max_on_one_node(const Topology& topology, const CpuSet& free) {
  int most = 0;
  for (const CpuGroup& node : topology.groups(Level::kNuma))
    most = std::max(most, node.cpus.overlap(free));
  return most;
}

}  // namespace headroom
