// SPDX-License-Identifier: Apache-2.0
// CpuSpread: over how much of the machine a set of CPUs is spread.
#pragma once

#include <headroom/cpuset.h>
#include <headroom/topology.h>

namespace headroom {

// How many of each hold a CPU of the set; CPUs that the topology does not know do not count.
struct CpuSpread {
  int numa_nodes = 0;
  int sockets = 0;
  int caches = 0;  // uncore: an L3, or what stands for one
  int cores = 0;
  friend bool operator==(const CpuSpread&, const CpuSpread&) = default;
};

CpuSpread cpu_spread(const Topology& topology, const CpuSet& cpus);

// Cores that lie in `free` with all their threads.
int count_whole_cores(const Topology& topology, const CpuSet& free);

// Of the CPUs in `free`, as many as one NUMA node has at the most: what still fits into one.
int max_on_one_node(const Topology& topology, const CpuSet& free);

}  // namespace headroom
