// SPDX-License-Identifier: Apache-2.0
// Machines for tests of the CPU policy: regular ones by their counts, and odd ones by chance.
#pragma once

#include <headroom/cpuset.h>
#include <headroom/topology.h>

#include <cstdint>
#include <random>
#include <vector>

namespace headroom {

struct MachineShape {
  int sockets = 1;
  int nodes_per_socket = 1;
  int cores_per_node = 4;
  int threads = 2;
  int cores_per_uncore = 0;  // 0: one a socket
};

// Threads of a core are numbered apart, as the kernel does on x86: 0, 0 + cores, ...
inline Topology machine(const MachineShape& shape) {
  const int cores = shape.sockets * shape.nodes_per_socket * shape.cores_per_node;
  std::vector<CpuLocation> rows;
  for (int core = 0; core < cores; ++core) {
    const int node = core / shape.cores_per_node;
    const int socket = node / shape.nodes_per_socket;
    const int uncore = shape.cores_per_uncore ? core / shape.cores_per_uncore : socket;
    for (int thread = 0; thread < shape.threads; ++thread)
      rows.push_back({core + thread * cores, core, socket, node, uncore});
  }
  return Topology::of(rows).value();
}

// Hybrid cores, CPUs that are missing, nodes of unequal size, caches across nodes.
inline Topology odd_machine(std::mt19937& random) {
  const auto below = [&](int n) { return std::uniform_int_distribution(0, n - 1)(random); };
  const int sockets = 1 + below(3);
  const int nodes = 1 + below(5);
  std::vector<CpuLocation> rows;
  Cpu next = below(2);
  for (int core = 0, cores = 2 + below(20); core < cores; ++core) {
    const int node = below(nodes);
    const Cpu first = next;
    const int uncore = below(4);
    for (int thread = 0, threads = 1 + below(3); thread < threads; ++thread) {
      rows.push_back({next, first, node % sockets, node, uncore});
      next += 1 + (below(5) == 0);
    }
  }
  return Topology::of(rows).value();
}

// Each CPU with a chance of `percent`.
inline CpuSet some_of(const CpuSet& cpus, int percent, std::mt19937& random) {
  CpuSet some;
  for (const Cpu cpu : cpus)
    if (std::uniform_int_distribution(0, 99)(random) < percent) some.insert(cpu);
  return some;
}

}  // namespace headroom
