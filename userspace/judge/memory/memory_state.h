// SPDX-License-Identifier: Apache-2.0
// MemoryState: which container has memory on which NUMA nodes. The kubelet's memory_manager_state
// as a value (kubelet: cm/memorymanager/state).
#pragma once

#include <headroom/pod.h>
#include <headroom/topology.h>
#include <headroom/units.h>

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headroom {

// As cpuset.mems has it: "0-1,3".
std::string format_nodes(NodeSet nodes);

// One resource, "memory" or "hugepages-<size>", on one node.
struct MemoryTable {
  Bytes total{};
  Bytes system_reserved{};
  Bytes allocatable{};
  Bytes reserved{};  // by containers
  Bytes free{};
  friend bool operator==(const MemoryTable&, const MemoryTable&) = default;
};

struct NumaNodeMemory {
  int assignments = 0;  // memory blocks that use this node
  NodeSet group{};      // the nodes that are allocated together with this one, and itself
  std::map<std::string, MemoryTable, std::less<>> tables{};  // by resource
  friend bool operator==(const NumaNodeMemory&, const NumaNodeMemory&) = default;
};
using MachineMemory = std::map<int, NumaNodeMemory>;  // by NUMA node

struct MemoryBlock {
  NodeSet nodes{};
  std::string type{};  // the resource
  Bytes size{};
  friend bool operator==(const MemoryBlock&, const MemoryBlock&) = default;
};
using MemoryBlocks = std::vector<MemoryBlock>;
using ContainerMemory = std::map<std::string, MemoryBlocks, std::less<>>;  // by container name
using PodMemory = std::map<std::string, ContainerMemory, std::less<>>;     // by pod uid
using MemoryPools = std::map<std::string, MemoryBlocks, std::less<>>;      // by pod uid

// What the ordinary init containers of the pod that is being admitted leave to its later
// containers. It is not part of the state file, as in the kubelet.
struct ReusableMemory {
  std::string pod{};  // uid
  std::map<std::pair<NodeSet, std::string>, Bytes> sizes{};
  friend bool operator==(const ReusableMemory&, const ReusableMemory&) = default;
};

struct MemoryState {
  MachineMemory machine{};
  PodMemory entries{};
  // The pools of pods with resources of their own (gate PodLevelResourceManagers). Of such a pod
  // only the pool is reserved on the machine; its containers' entries are parts of it.
  MemoryPools pod_entries{};
  ReusableMemory reusable{};

  friend bool operator==(const MemoryState&, const MemoryState&) = default;
};

bool has_container(const Pod& pod, std::string_view name);

// The sum over these nodes.
Bytes amount_on(const MachineMemory& machine, NodeSet nodes, const std::string& resource,
                Bytes MemoryTable::*field);
// A node that is used alone cannot join a group; a group that is in use can neither be divided nor
// joined by other nodes.
bool fits_groups(const MachineMemory& machine, NodeSet nodes);
// Fills the nodes in ascending order. What does not fit is left out; a restored state may have it.
void reserve_memory(MachineMemory& machine, NodeSet nodes, const std::string& resource, Bytes size);

// Null: it has none of its own.
const MemoryBlocks* memory_blocks(const MemoryState& state, std::string_view pod,
                                  std::string_view container);

// The nodes that all blocks of the container use: its cpuset.mems. Empty: any node.
NodeSet memory_nodes(const MemoryState& state, std::string_view pod, std::string_view container);

// The container's memory becomes free again, first on the node with the lowest id. A pod's pool
// becomes free as a whole, with the last of its containers.
[[nodiscard]] MemoryState release_memory(MemoryState state, std::string_view pod,
                                         std::string_view container);

// The container was created: the ordinary init containers before it have finished.
[[nodiscard]] MemoryState release_finished_init_memory(MemoryState state, const Pod& pod,
                                                       std::string_view container);

// Without what belongs to a pod or container that is not among `active`.
[[nodiscard]] MemoryState remove_stale(MemoryState state, std::span<const Pod* const> active);

}  // namespace headroom
