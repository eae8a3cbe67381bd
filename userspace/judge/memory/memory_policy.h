// SPDX-License-Identifier: Apache-2.0
// MemoryPolicy: the kubelet's Static memory manager on one machine, as functions from state to
// state (kubelet: cm/memorymanager/policy_static.go).
#pragma once

#include "judge/cpuset/hints/cpu_hints.h"
#include "judge/memory/memory_state.h"
#include "judge/resources/pod_level.h"

#include <headroom/pod.h>
#include <headroom/topology.h>
#include <headroom/units.h>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <tl/expected.hpp>

namespace headroom {

// What one NUMA node has, as its meminfo and hugepages folders say.
struct NumaMemorySize {
  Bytes memory{};                                          // huge pages included
  std::map<std::string, Bytes, std::less<>> huge_pages{};  // by resource: "hugepages-2Mi"
  friend bool operator==(const NumaMemorySize&, const NumaMemorySize&) = default;
};
using MemorySizes = std::map<int, NumaMemorySize>;  // by NUMA node

// reservedMemory: what pods do not get of each node.
using ReservedMemory = std::map<int, ResourceList>;

// Whether the memory manager gives this resource out: "memory", or "hugepages-<size>".
bool is_memory_resource(std::string_view resource);

// Whether the pod's containers get memory of their own: Guaranteed, and without resources of its
// own unless `mode` serves such pods.
bool gets_own_memory(const Pod& pod, PodLevelMode mode);
bool requests_memory(const Pod& pod, const Container& container);

// Everything that speaks against these reservations, in the kubelet's words where it has them.
// `reservation` is what the node's allocatable amounts are reduced by: kubeReserved, systemReserved
// and the hard eviction threshold. Empty: the reservations are valid.
std::vector<std::string> find_reservation_faults(const MemorySizes& sizes,
                                                 const ReservedMemory& reserved,
                                                 const ResourceList& reservation);

// Why a container gets no memory of its own.
enum class MemoryRefusal : std::uint8_t {
  kNoDefaultAffinity,     // no set of nodes has enough
  kDefaultNotPreferred,   // although the topology manager's hint is
  kNotExtensible,         // no larger set contains the hint's nodes and has enough
  kExtendedNotPreferred,  // although the topology manager's hint is
  kGroupViolated,         // a node of the hint belongs to another group
};
std::string_view message(MemoryRefusal refusal);
// Why a pod gets no pool of memory.
using MemoryPoolRefusal = std::variant<MemoryRefusal, EmptyPodPool>;

class MemoryPolicy {
 public:
  // Expects find_reservation_faults() to be empty. A reservation above what a node has leaves
  // nothing to allocate on that node.
  MemoryPolicy(const MemorySizes& sizes, const ReservedMemory& reserved,
               PodLevelMode mode = PodLevelMode::kOff);

  PodLevelMode pod_level_mode() const { return mode_; }
  // Nothing assigned yet.
  MemoryState initial() const { return {.machine = machine_}; }
  // What makes a state one that this policy cannot go on from, in the kubelet's words. A state with
  // neither nodes nor entries stands for initial().
  std::optional<std::string> find_fault(const MemoryState& state) const;

  // The state in which the containers of these pods have the blocks they are `known` to have: in
  // place of a state that has a fault, or was made for other amounts. Blocks on nodes or of
  // resources that this machine has not, or that would divide a group, are left out; so are pools
  // of pods that get none now, and parts of pods that get a pool and have none.
  MemoryState restore(const MemoryState& known, std::span<const Pod* const> active) const;

  // Whether it has all the memory it is to have. Init containers that have finished may have none.
  bool is_served(const MemoryState& state, const Pod& pod) const;

  // What one container hints at, or the pod as a whole. None where the pod gets no memory of its
  // own, and, as in the kubelet, where no set of nodes has enough: allocate() then refuses.
  ProviderHints hints(const MemoryState& state, const Pod& pod, const Container& container) const;
  ProviderHints hints(const MemoryState& state, const Pod& pod) const;

  // The state in which the container has its memory: the same one if it has it already, or wants
  // none. `affinity` is what the topology manager merged; without nodes: the best of the hints.
  tl::expected<MemoryState, MemoryRefusal> allocate(MemoryState state, const Pod& pod,
                                                    const Container& container,
                                                    const NumaHint& affinity) const;

  // The same for a pod that gets a pool (has_pod_pool()): the state in which the pod has it, and
  // each container its part. A pod that has its pool keeps it (kubelet: AllocatePod).
  tl::expected<MemoryState, MemoryPoolRefusal> allocate_pod(MemoryState state, const Pod& pod,
                                                            const NumaHint& affinity) const;

 private:
  ProviderHints pool_hints(const MemoryState& state, const Pod& pod,
                           const std::map<std::string, Bytes, std::less<>>& requested) const;

  MachineMemory machine_;  // without any assignment
  PodLevelMode mode_;
};

}  // namespace headroom
