// SPDX-License-Identifier: Apache-2.0
// assign_resources(): computes which container has which CPUs and which NUMA nodes' memory, from
// the known state and the active pods.
//
// The kubelet refuses to start on a state that does not fit the machine or its configuration, and
// asks for the file to be deleted (kubelet: cm/cpumanager/state). Here every assignment that still
// fits is kept, and only the others are made again: CPUs that are gone, now reserved, claimed
// twice, or not as many as requested.
#pragma once

#include "judge/cpuset/cpu_admission.h"
#include "judge/cpuset/policy/cpu_state.h"
#include "judge/cpuset/policy/static_policy.h"

#include <headroom/cpuset.h>
#include <headroom/pod.h>
#include <headroom/topology.h>

#include <span>
#include <string>
#include <vector>

namespace headroom {

// CpuSpread: over how much of the machine a set of CPUs is spread.

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

// What a container runs on, as its cgroup says.
struct RunningCpus {
  std::string pod;        // uid
  std::string container;  // empty: the pod's own cgroup
  CpuSet cpus;
};

// The NUMA nodes whose memory a container is limited to, as its cgroup says.
struct RunningMemory {
  std::string pod;  // uid
  std::string container;
  NodeSet nodes;
};

struct PodRefusal {
  const Pod* pod = nullptr;
  ContainerRefusal why;
};

struct CpuAssignment {
  CpuState state;
  // Containers that got no CPUs: they run in the shared pool, or on what is left of their own.
  std::vector<PodRefusal> refused;
  SharedPool pool;  // afterwards
};

struct ResourceAssignment {
  ResourceState state;
  std::vector<PodRefusal> refused;  // containers that got neither CPUs nor memory
  SharedPool pool;                  // as above; nothing without a CPU manager
};

// `active` in the order they came, in which they are served. `running` is given at the start, when
// `known` may be wrong: a set that can only be exclusive (of the right size, and of no other
// container) wins over `known`; any set of the right size wins over no entry, so that a running
// container keeps its CPUs.
// Containers that have CPUs keep them even if the pool is too small; `pool` only keeps others from
// getting any.
ResourceAssignment assign_resources(const ResourceManagers& managers, const ResourceState& known,
                                    std::span<const Pod* const> active,
                                    std::span<const RunningCpus> running = {},
                                    const SharedPoolOptions& pool = {});

// Of CPUs alone.
CpuAssignment assign_cpus(const StaticPolicy& policy, const CpuState& known,
                          std::span<const Pod* const> active,
                          std::span<const RunningCpus> running = {},
                          const SharedPoolOptions& pool = {});

// The memory that the containers of these pods have or, where that is not known, run on: `running`
// is given at the start; a pod's pool is not made of it. What assign_resources() goes on from. Of
// `known` only the entries count.
MemoryState keep_memory(const MemoryPolicy& policy, const MemoryState& known,
                        std::span<const Pod* const> active,
                        std::span<const RunningMemory> running = {});

// Where containers without exclusive CPUs run. Under strict reservation the default set may be used
// up; then the reserved CPUs, because the pool must not be empty.
CpuSet shared_pool(const StaticPolicy& policy, const CpuState& state);

}  // namespace headroom
