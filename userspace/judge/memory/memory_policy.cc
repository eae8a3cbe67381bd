// SPDX-License-Identifier: Apache-2.0
#include "judge/memory/memory_policy.h"

#include "judge/memory/memory_hints.h"
#include "judge/resources/pod_resources.h"

#include <algorithm>
#include <utility>

namespace headroom {
namespace {

constexpr const char* kMemory = "memory";

bool is_ordinary_init(const Pod& pod, const Container& container) {
  return std::ranges::any_of(pod.init_containers, [&](const Container& init) {
    return init.name == container.name && !init.sidecar;
  });
}

// What a block takes over from the pod's init containers is subtracted from them, first to last.
void shrink_init_blocks(MemoryState& state, const Pod& pod, const Container& container,
                        const MemoryBlock& block) {
  const auto containers = state.entries.find(pod.uid);
  if (containers == state.entries.end()) return;
  Bytes left = block.size;
  for (const Container& init : pod.init_containers) {
    if (init.name == container.name) break;
    if (init.sidecar) continue;
    const auto blocks = containers->second.find(init.name);
    if (blocks == containers->second.end()) continue;
    for (MemoryBlock& each : blocks->second) {
      if (each.type != block.type || each.nodes != block.nodes) continue;
      const Bytes taken = std::min(left, each.size);
      each.size = each.size - taken;
      left = left - taken;
    }
  }
}

void update_reusable(MemoryState& state, const Pod& pod, const Container& container,
                     const MemoryBlocks& blocks) {
  if (state.reusable.pod != pod.uid) state.reusable = {.pod = pod.uid, .sizes = {}};
  const bool ordinary_init = is_ordinary_init(pod, container);
  for (const MemoryBlock& block : blocks) {
    Bytes& size = state.reusable.sizes[{block.nodes, block.type}];
    size = ordinary_init ? std::max(size, block.size) : size - std::min(size, block.size);
  }
}

// Equal where neither what a node has nor what its group has given out differs. Within a group the
// order of allocation decides which node gave what.
bool equivalent(const MachineMemory& state, const MachineMemory& expected) {
  if (state.size() != expected.size()) return false;
  for (const auto& [id, node] : state) {
    const auto found = expected.find(id);
    if (found == expected.end()) return false;
    const NumaNodeMemory& other = found->second;
    if (node.assignments != other.assignments || node.group != other.group ||
        node.tables.size() != other.tables.size())
      return false;
    for (const auto& [resource, table] : node.tables) {
      const auto counterpart = other.tables.find(resource);
      if (counterpart == other.tables.end() || table.total != counterpart->second.total ||
          table.system_reserved != counterpart->second.system_reserved ||
          table.allocatable != counterpart->second.allocatable)
        return false;
      for (const auto field : {&MemoryTable::free, &MemoryTable::reserved})
        if (amount_on(state, node.group, resource, field) !=
            amount_on(expected, node.group, resource, field))
          return false;
    }
  }
  return true;
}

std::string block_fault(const std::string& pod, const std::string& container,
                        std::string_view what) {
  return "[memorymanager] (pod: " + pod + ", container: " + container +
         ") the memory assignment uses " + std::string(what);
}

}  // namespace

bool gets_own_memory(const Pod& pod, PodLevelMode mode) {
  return qos_class(pod) == QosClass::kGuaranteed &&
         (mode != PodLevelMode::kOff || !has_pod_level_resources(pod));
}

bool requests_memory(const Pod& pod, const Container& container) {
  return !memory_requests(pod, container).empty();
}

std::string_view message(MemoryRefusal refusal) {
  switch (refusal) {
    case MemoryRefusal::kNoDefaultAffinity:
      return "[memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough "
             "memory is available";
    case MemoryRefusal::kDefaultNotPreferred:
      return "[memorymanager] failed to find the default preferred hint";
    case MemoryRefusal::kNotExtensible:
      return "[memorymanager] failed to find NUMA nodes to extend the current topology hint";
    case MemoryRefusal::kExtendedNotPreferred:
      return "[memorymanager] failed to find the extended preferred hint";
    case MemoryRefusal::kGroupViolated:
      return "[memorymanager] preferred hint violates NUMA node allocation";
  }
  return "";
}

MemoryPolicy::MemoryPolicy(const MemorySizes& sizes, const ReservedMemory& reserved,
                           PodLevelMode mode)
    : mode_(mode) {
  for (const auto& [id, size] : sizes) {
    NumaNodeMemory& node = machine_[id];
    node.group = NodeSet::of(id);
    const auto reserved_of = [&, node_id = id](const std::string& resource) {
      const auto list = reserved.find(node_id);
      if (list == reserved.end()) return Bytes{};
      const auto amount = list->second.find(resource);
      return amount == list->second.end() ? Bytes{} : Bytes{amount->second.value()};
    };
    const auto add = [&](const std::string& resource, Bytes total, Bytes other_use) {
      const Bytes withheld = reserved_of(resource);
      const Bytes left = std::max(Bytes{}, total - other_use - withheld);
      node.tables[resource] = {.total = total,
                               .system_reserved = withheld,
                               .allocatable = left,
                               .reserved = {},
                               .free = left};
    };
    Bytes huge;
    for (const auto& [resource, total] : size.huge_pages) {
      add(resource, total, {});
      huge += total;
    }
    add(kMemory, size.memory, huge);
  }
}

std::optional<std::string> MemoryPolicy::find_fault(const MemoryState& state) const {
  if (state.machine.empty()) {
    if (state.entries.empty()) return std::nullopt;
    return "[memorymanager] machine state can not be empty when it has memory assignments";
  }
  MachineMemory expected = machine_;
  std::optional<std::string> fault;
  const auto reserve = [&](const std::string& pod, const std::string& container,
                           const MemoryBlocks& blocks) {
    for (const MemoryBlock& block : blocks) {
      for (const int id : block.nodes.ids()) {
        const auto node = expected.find(id);
        if (node == expected.end())
          fault = block_fault(pod, container, "the NUMA that does not exist");
        else if (!node->second.tables.contains(block.type))
          fault = block_fault(pod, container, "memory resource that does not exist");
        if (fault) return;
      }
      reserve_memory(expected, block.nodes, block.type, block.size);
    }
  };
  for (const auto& [pod, containers] : state.entries) {
    const auto pool = state.pod_entries.find(pod);
    if (pool != state.pod_entries.end()) reserve(pod, "", pool->second);
    if (pool == state.pod_entries.end())
      for (const auto& [container, blocks] : containers)
        if (!fault) reserve(pod, container, blocks);
    if (fault) return fault;
  }
  if (equivalent(state.machine, expected)) return std::nullopt;
  return "[memorymanager] the expected machine state is different from the real one";
}

MemoryState MemoryPolicy::restore(const MemoryState& known,
                                  std::span<const Pod* const> active) const {
  MemoryState state = initial();
  const auto fits = [&](const MemoryBlock& block) {
    const auto has_resource = [&](int id) {
      const auto node = state.machine.find(id);
      return node != state.machine.end() && node->second.tables.contains(block.type);
    };
    return !block.nodes.empty() && std::ranges::all_of(block.nodes.ids(), has_resource) &&
           fits_groups(state.machine, block.nodes);
  };
  const auto reserve = [&](const MemoryBlocks& blocks) {
    for (const MemoryBlock& block : blocks)
      reserve_memory(state.machine, block.nodes, block.type, block.size);
  };
  for (const Pod* const pod : active) {
    const auto containers = known.entries.find(pod->uid);
    const auto pool = known.pod_entries.find(pod->uid);
    const bool has_pool = pool != known.pod_entries.end();
    if (containers == known.entries.end() || has_pool != has_pod_pool(*pod, mode_)) continue;
    if (has_pool && !std::ranges::all_of(pool->second, fits)) continue;
    if (has_pool) reserve(pool->second);
    if (has_pool) state.pod_entries.insert(*pool);
    for (const auto& [name, blocks] : containers->second) {
      if (!has_container(*pod, name)) continue;
      if (!has_pool && !std::ranges::all_of(blocks, fits)) continue;
      if (!has_pool) reserve(blocks);
      state.entries[pod->uid].emplace(name, blocks);
    }
  }
  return state;
}

bool MemoryPolicy::is_served(const MemoryState& state, const Pod& pod) const {
  if (!gets_own_memory(pod, mode_)) return true;
  const bool pool = has_pod_pool(pod, mode_);
  if (pool && !state.pod_entries.contains(pod.uid)) return false;
  const auto served = [&](const Container& container) {
    return (!pool && !requests_memory(pod, container)) ||
           memory_blocks(state, pod.uid, container.name);
  };
  return std::ranges::all_of(pod.containers, served) &&
         std::ranges::all_of(pod.init_containers, [&](const Container& container) {
           return !container.sidecar || served(container);
         });
}

ProviderHints MemoryPolicy::hints(const MemoryState& state, const Pod& pod,
                                  const Container& container) const {
  if (!gets_own_memory(pod, mode_)) return {};
  const ResourceSizes requested = memory_requests(pod, container);
  if (const MemoryBlocks* const blocks = memory_blocks(state, pod.uid, container.name))
    return hints_again(*blocks, requested);
  return for_each_resource(requested, memory_hints(state, pod, requested));
}

ProviderHints MemoryPolicy::hints(const MemoryState& state, const Pod& pod) const {
  if (!gets_own_memory(pod, mode_)) return {};
  const ResourceSizes requested = memory_requests(pod, mode_);
  if (has_pod_pool(pod, mode_)) return pool_hints(state, pod, requested);
  for (const auto* const list : {&pod.init_containers, &pod.containers})
    for (const Container& container : *list)
      if (const MemoryBlocks* const blocks = memory_blocks(state, pod.uid, container.name))
        return hints_again(*blocks, requested);
  return for_each_resource(requested, memory_hints(state, pod, requested));
}

tl::expected<MemoryState, MemoryRefusal> MemoryPolicy::allocate(MemoryState state, const Pod& pod,
                                                                const Container& container,
                                                                const NumaHint& affinity) const {
  if (!gets_own_memory(pod, mode_)) return state;
  if (const MemoryBlocks* const blocks = memory_blocks(state, pod.uid, container.name)) {
    update_reusable(state, pod, container, *blocks);
    return state;
  }
  const ResourceSizes requested = memory_requests(pod, container);
  if (requested.empty() && !has_pod_level_resources(pod)) return state;
  const auto nodes = choose_nodes(state, pod, requested, affinity);
  if (!nodes) return tl::make_unexpected(nodes.error());

  MemoryBlocks blocks;
  for (const auto& [resource, size] : requested) {
    blocks.push_back({*nodes, resource, size});
    const Bytes reusable = reusable_on(state, pod, *nodes, resource);
    reserve_memory(state.machine, *nodes, resource, size - std::min(size, reusable));
  }
  update_reusable(state, pod, container, blocks);
  for (const MemoryBlock& block : blocks)
    shrink_init_blocks(state, pod, container, block);
  state.entries[pod.uid][container.name] = std::move(blocks);
  return state;
}

}  // namespace headroom
