// SPDX-License-Identifier: Apache-2.0
#include "judge/memory/memory_policy.h"

#include "judge/cpuset/hints/hint_merge.h"
#include "judge/resources/pod_resources.h"

#include <algorithm>
#include <utility>

namespace headroom {
namespace {

constexpr const char* kMemory = "memory";

using ResourceSizes = std::map<std::string, Bytes, std::less<>>;  // by resource

ResourceSizes requested_by(const Container& container) {
  ResourceSizes amounts;
  for (const auto& [resource, quantity] : container.requests)
    if (is_memory_resource(resource)) amounts[resource] = Bytes{quantity.value()};
  return amounts;
}

// The most the pod has at once: apps and sidecars, or an init container beside the sidecars started
// before it. As in the kubelet, a resource that only init containers request is missing.
ResourceSizes requested_by(const Pod& pod) {
  ResourceSizes sidecars;
  ResourceSizes starting;
  ResourceSizes running;
  for (const Container& container : pod.init_containers)
    for (const auto& [resource, size] : requested_by(container)) {
      if (container.sidecar)
        sidecars[resource] += size;
      else
        starting[resource] = std::max(starting[resource], sidecars[resource] + size);
    }
  for (const Container& container : pod.containers)
    for (const auto& [resource, size] : requested_by(container))
      running[resource] += size;
  for (auto& [resource, size] : running)
    size = std::max(size + sidecars[resource], starting[resource]);
  return running;
}

bool is_ordinary_init(const Pod& pod, const Container& container) {
  return std::ranges::any_of(pod.init_containers, [&](const Container& init) {
    return init.name == container.name && !init.sidecar;
  });
}

Bytes reusable_on(const MemoryState& state, const Pod& pod, NodeSet nodes,
                  const std::string& resource) {
  if (state.reusable.pod != pod.uid) return {};
  const auto size = state.reusable.sizes.find({nodes, resource});
  return size == state.reusable.sizes.end() ? Bytes{} : size->second;
}

bool has_enough(const MemoryState& state, const Pod* reusing, NodeSet nodes,
                const ResourceSizes& requested) {
  return std::ranges::all_of(requested, [&](const auto& each) {
    const auto& [resource, size] = each;
    const Bytes reusable = reusing ? reusable_on(state, *reusing, nodes, resource) : Bytes{};
    return amount_on(state.machine, nodes, resource, &MemoryTable::free) + reusable >= size;
  });
}

// Narrow sets first. Preferred are those of as few nodes as an unused machine would need.
HintList hints_for(const MemoryState& state, const Pod& pod, const ResourceSizes& requested) {
  std::vector<int> ids;
  for (const auto& [id, node] : state.machine)
    ids.push_back(id);
  HintList hints;
  int fewest = static_cast<int>(ids.size());
  int tried = 0;
  const auto add = [&](const std::vector<std::size_t>& picked) {
    if (++tried > kMaxHintSubsets) return false;
    NodeSet nodes;
    for (const std::size_t i : picked)
      nodes = nodes | NodeSet::of(ids[i]);
    const bool could = std::ranges::all_of(requested, [&](const auto& each) {
      return amount_on(state.machine, nodes, each.first, &MemoryTable::allocatable) >= each.second;
    });
    if (!could) return true;
    fewest = std::min(fewest, nodes.count());
    if (fits_groups(state.machine, nodes) && has_enough(state, &pod, nodes, requested))
      hints.push_back({nodes, /*preferred=*/false});
    return true;
  };
  for (std::size_t size = 1; size <= ids.size(); ++size)
    if (!for_each_subset(ids.size(), size, add)) break;
  for (NumaHint& hint : hints)
    hint.preferred = hint.nodes->count() == fewest;
  return hints;
}

ProviderHints for_each_resource(const ResourceSizes& requested, const HintList& hints) {
  ProviderHints all;
  if (!hints.empty())
    for (const auto& [resource, size] : requested)
      all[resource] = hints;
  return all;
}

// What the container has already, so that a restarted daemon merges to the same nodes.
ProviderHints hints_again(const MemoryBlocks& blocks, const ResourceSizes& requested) {
  ProviderHints hints;
  for (const auto& [resource, size] : requested)
    hints[resource] = HintList{};
  if (blocks.size() != requested.size()) return hints;
  for (const MemoryBlock& block : blocks) {
    const auto request = requested.find(block.type);
    if (request == requested.end() || request->second != block.size) return hints;
    hints[block.type]->push_back({block.nodes, /*preferred=*/true});
  }
  return hints;
}

std::optional<NumaHint> best_of(const HintList& hints, NodeSet containing) {
  const auto is_better = [](const NumaHint& a, const NumaHint& b) {
    if (a.preferred != b.preferred) return a.preferred;
    if (a.nodes->count() != b.nodes->count()) return a.nodes->count() < b.nodes->count();
    return *a.nodes < *b.nodes;
  };
  std::optional<NumaHint> best;
  for (const NumaHint& hint : hints)
    if (hint.nodes->contains(containing) && (!best || is_better(hint, *best))) best = hint;
  return best;
}

tl::expected<NodeSet, MemoryRefusal> choose_nodes(const MemoryState& state, const Pod& pod,
                                                  const ResourceSizes& requested,
                                                  const NumaHint& affinity) {
  NumaHint chosen = affinity;
  if (!chosen.nodes) {
    const auto best = best_of(hints_for(state, pod, requested), NodeSet{});
    if (!best) return tl::make_unexpected(MemoryRefusal::kNoDefaultAffinity);
    if (affinity.preferred && !best->preferred)
      return tl::make_unexpected(MemoryRefusal::kDefaultNotPreferred);
    chosen = *best;
  }
  // The hint may be narrower than what memory needs: other providers had a part in it.
  if (!has_enough(state, /*reusing=*/nullptr, *chosen.nodes, requested)) {
    const auto best = best_of(hints_for(state, pod, requested), *chosen.nodes);
    if (!best) return tl::make_unexpected(MemoryRefusal::kNotExtensible);
    if (chosen.preferred && !best->preferred)
      return tl::make_unexpected(MemoryRefusal::kExtendedNotPreferred);
    chosen = *best;
  }
  for (const int id : chosen.nodes->ids()) {
    const auto node = state.machine.find(id);
    if (node == state.machine.end()) return tl::make_unexpected(MemoryRefusal::kGroupViolated);
    // A single node is not checked, as in the kubelet: it can be taken out of a group here.
    if (chosen.nodes->count() == 1 || node->second.assignments == 0) continue;
    if (node->second.group != *chosen.nodes)
      return tl::make_unexpected(MemoryRefusal::kGroupViolated);
  }
  return *chosen.nodes;
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

bool gets_own_memory(const Pod& pod) {
  return qos_class(pod) == QosClass::kGuaranteed && !has_pod_level_resources(pod);
}

bool requests_memory(const Container& container) {
  return !requested_by(container).empty();
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

MemoryPolicy::MemoryPolicy(const MemorySizes& sizes, const ReservedMemory& reserved) {
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
  for (const auto& [pod, containers] : state.entries)
    for (const auto& [container, blocks] : containers)
      for (const MemoryBlock& block : blocks) {
        for (const int id : block.nodes.ids()) {
          const auto node = expected.find(id);
          if (node == expected.end())
            return block_fault(pod, container, "the NUMA that does not exist");
          if (!node->second.tables.contains(block.type))
            return block_fault(pod, container, "memory resource that does not exist");
        }
        reserve_memory(expected, block.nodes, block.type, block.size);
      }
  if (equivalent(state.machine, expected)) return std::nullopt;
  return "[memorymanager] the expected machine state is different from the real one";
}

MemoryState MemoryPolicy::restore(const PodMemory& known,
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
  for (const Pod* const pod : active) {
    const auto containers = known.find(pod->uid);
    if (containers == known.end()) continue;
    for (const auto& [name, blocks] : containers->second) {
      if (!has_container(*pod, name) || !std::ranges::all_of(blocks, fits)) continue;
      for (const MemoryBlock& block : blocks)
        reserve_memory(state.machine, block.nodes, block.type, block.size);
      state.entries[pod->uid].emplace(name, blocks);
    }
  }
  return state;
}

bool MemoryPolicy::is_served(const MemoryState& state, const Pod& pod) {
  if (!gets_own_memory(pod)) return true;
  const auto served = [&](const Container& container) {
    return !requests_memory(container) || memory_blocks(state, pod.uid, container.name);
  };
  return std::ranges::all_of(pod.containers, served) &&
         std::ranges::all_of(pod.init_containers, [&](const Container& container) {
           return !container.sidecar || served(container);
         });
}

ProviderHints MemoryPolicy::hints(const MemoryState& state, const Pod& pod,
                                  const Container& container) const {
  if (!gets_own_memory(pod)) return {};
  const ResourceSizes requested = requested_by(container);
  if (const MemoryBlocks* const blocks = memory_blocks(state, pod.uid, container.name))
    return hints_again(*blocks, requested);
  return for_each_resource(requested, hints_for(state, pod, requested));
}

ProviderHints MemoryPolicy::hints(const MemoryState& state, const Pod& pod) const {
  if (!gets_own_memory(pod)) return {};
  const ResourceSizes requested = requested_by(pod);
  for (const auto* const list : {&pod.init_containers, &pod.containers})
    for (const Container& container : *list)
      if (const MemoryBlocks* const blocks = memory_blocks(state, pod.uid, container.name))
        return hints_again(*blocks, requested);
  return for_each_resource(requested, hints_for(state, pod, requested));
}

tl::expected<MemoryState, MemoryRefusal> MemoryPolicy::allocate(MemoryState state, const Pod& pod,
                                                                const Container& container,
                                                                const NumaHint& affinity) const {
  if (!gets_own_memory(pod)) return state;
  if (const MemoryBlocks* const blocks = memory_blocks(state, pod.uid, container.name)) {
    update_reusable(state, pod, container, *blocks);
    return state;
  }
  const ResourceSizes requested = requested_by(container);
  if (requested.empty()) return state;
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
