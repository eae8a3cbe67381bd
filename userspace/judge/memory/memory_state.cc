// SPDX-License-Identifier: Apache-2.0
#include "judge/memory/memory_state.h"

#include "judge/allocatable/amounts.h"
#include "judge/memory/memory_policy.h"

#include <headroom/cpuset.h>

#include <algorithm>
#include <optional>
#include <set>

namespace headroom {
namespace {

void release_block(MachineMemory& machine, const MemoryBlock& block) {
  Bytes left = block.size;
  for (const int id : block.nodes.ids()) {
    const auto node = machine.find(id);
    if (node == machine.end()) continue;  // a node that this machine has lost
    if (node->second.assignments > 0) --node->second.assignments;
    if (node->second.assignments == 0) node->second.group = NodeSet::of(id);
    const auto table = node->second.tables.find(block.type);
    if (table == node->second.tables.end()) continue;
    const Bytes released = std::min(left, table->second.reserved);
    table->second.reserved = table->second.reserved - released;
    table->second.free += released;
    left = left - released;
  }
}

}  // namespace

std::string format_nodes(NodeSet nodes) {
  CpuSet set;
  for (const int node : nodes.ids())
    set.insert(node);
  return set.format();
}

bool has_container(const Pod& pod, std::string_view name) {
  const auto named = [&](const Container& container) { return container.name == name; };
  return std::ranges::any_of(pod.init_containers, named) ||
         std::ranges::any_of(pod.containers, named);
}

Bytes amount_on(const MachineMemory& machine, NodeSet nodes, const std::string& resource,
                Bytes MemoryTable::*field) {
  Bytes sum;
  for (const int id : nodes.ids())
    if (const auto node = machine.find(id); node != machine.end())
      if (const auto table = node->second.tables.find(resource); table != node->second.tables.end())
        sum += table->second.*field;
  return sum;
}

bool fits_groups(const MachineMemory& machine, NodeSet nodes) {
  return std::ranges::all_of(nodes.ids(), [&](int id) {
    const NumaNodeMemory& node = machine.at(id);
    if (nodes.count() == 1) return node.group.count() <= 1;
    return node.assignments == 0 || (node.group.count() > 1 && node.group == nodes);
  });
}

void reserve_memory(MachineMemory& machine, NodeSet nodes, const std::string& resource,
                    Bytes size) {
  for (const int id : nodes.ids()) {
    NumaNodeMemory& node = machine.at(id);
    ++node.assignments;
    node.group = nodes;
    const auto table = node.tables.find(resource);
    if (table == node.tables.end()) continue;
    const Bytes taken = std::min(size, table->second.free);
    table->second.free = table->second.free - taken;
    table->second.reserved += taken;
    size = size - taken;
  }
}

const MemoryBlocks* memory_blocks(const MemoryState& state, std::string_view pod,
                                  std::string_view container) {
  const auto containers = state.entries.find(pod);
  if (containers == state.entries.end()) return nullptr;
  const auto blocks = containers->second.find(container);
  return blocks == containers->second.end() ? nullptr : &blocks->second;
}

NodeSet memory_nodes(const MemoryState& state, std::string_view pod, std::string_view container) {
  NodeSet nodes;
  if (const MemoryBlocks* const blocks = memory_blocks(state, pod, container))
    for (const MemoryBlock& block : *blocks)
      nodes = nodes | block.nodes;
  return nodes;
}

MemoryState release_memory(MemoryState state, std::string_view pod, std::string_view container) {
  const auto containers = state.entries.find(pod);
  if (containers == state.entries.end()) return state;
  const auto blocks = containers->second.find(container);
  if (blocks == containers->second.end()) return state;
  const auto pool = state.pod_entries.find(pod);
  if (pool == state.pod_entries.end())
    for (const MemoryBlock& block : blocks->second)
      release_block(state.machine, block);
  containers->second.erase(blocks);
  if (!containers->second.empty()) return state;
  state.entries.erase(containers);
  if (pool == state.pod_entries.end()) return state;
  for (const MemoryBlock& block : pool->second)
    release_block(state.machine, block);
  state.pod_entries.erase(pool);
  return state;
}

MemoryState release_finished_init_memory(MemoryState state, const Pod& pod,
                                         std::string_view container) {
  for (const Container& init : pod.init_containers) {
    if (init.name == container) break;
    if (!init.sidecar) state = release_memory(std::move(state), pod.uid, init.name);
  }
  return state;
}

MemoryState remove_stale(MemoryState state, std::span<const Pod* const> active) {
  std::vector<std::pair<std::string, std::string>> stale;
  for (const auto& [uid, containers] : state.entries) {
    const auto pod = std::ranges::find(active, uid, &Pod::uid);
    for (const auto& [name, blocks] : containers)
      if (pod == active.end() || !has_container(**pod, name)) stale.emplace_back(uid, name);
  }
  for (const auto& [uid, name] : stale)
    state = release_memory(std::move(state), uid, name);
  return state;
}

bool is_memory_resource(std::string_view resource) {
  return resource == "memory" || resource.starts_with("hugepages-");
}

std::vector<std::string> find_reservation_faults(const MemorySizes& sizes,
                                                 const ReservedMemory& reserved,
                                                 const ResourceList& reservation) {
  std::vector<std::string> faults;
  std::set<std::string, std::less<>> resources;
  ResourceList totals;
  for (const auto& [resource, amount] : reservation)
    if (is_memory_resource(resource)) resources.insert(resource);
  for (const auto& [node, limits] : reserved) {
    if (!sizes.contains(node))
      faults.push_back("the reserved memory configuration references a NUMA node " +
                       std::to_string(node) + " that does not exist on this machine");
    for (const auto& [resource, amount] : limits) {
      if (!is_memory_resource(resource)) continue;
      resources.insert(resource);
      Quantity total = amount;  // the last node's format is that of the message
      total += totals[resource];
      totals[resource] = total;
    }
  }
  for (const std::string& resource : resources) {
    const Quantity total = totals.contains(resource) ? totals.at(resource) : Quantity{};
    const auto entry = reservation.find(resource);
    const Quantity expected = entry == reservation.end() ? Quantity{} : entry->second;
    if (total != expected)
      faults.push_back("the total amount " + double_quoted(total.canonical()) + " of type " +
                       double_quoted(resource) + " is not equal to the value " +
                       double_quoted(expected.canonical()) +
                       " determined by Node Allocatable feature");
  }
  if (!totals.contains("memory") || totals.at("memory").sign() <= 0)
    faults.emplace_back("[memorymanager] you should specify the system reserved memory");
  return faults;
}

}  // namespace headroom
