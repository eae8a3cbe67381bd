// SPDX-License-Identifier: Apache-2.0
#include "judge/memory/memory_hints.h"

#include "judge/cpuset/hints/hint_merge.h"
#include "judge/resources/pod_resources.h"

#include <algorithm>
#include <vector>

namespace headroom {
namespace {

ResourceSizes requested_by(const Container& container) {
  ResourceSizes amounts;
  for (const auto& [resource, quantity] : container.requests)
    if (is_memory_resource(resource)) amounts[resource] = Bytes{quantity.value()};
  return amounts;
}

// The pod's pool.
ResourceSizes requested_pool(const Pod& pod) {
  ResourceSizes amounts = requested_by(*pod.pod_level);
  std::erase_if(amounts, [](const auto& each) { return each.second.count <= 0; });
  return amounts;
}

bool has_enough(const MemoryState& state, const Pod* reusing, NodeSet nodes,
                const ResourceSizes& requested) {
  return std::ranges::all_of(requested, [&](const auto& each) {
    const auto& [resource, size] = each;
    const Bytes reusable = reusing ? reusable_on(state, *reusing, nodes, resource) : Bytes{};
    return amount_on(state.machine, nodes, resource, &MemoryTable::free) + reusable >= size;
  });
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

}  // namespace

ResourceSizes memory_requests(const Pod& pod, const Container& container) {
  if (has_pod_level_resources(pod) && !is_guaranteed(container)) return {};
  return requested_by(container);
}

ResourceSizes memory_requests(const Pod& pod, PodLevelMode mode) {
  if (has_pod_pool(pod, mode)) return requested_pool(pod);
  ResourceSizes sidecars;
  ResourceSizes starting;
  ResourceSizes running;
  for (const Container& container : pod.init_containers)
    for (const auto& [resource, size] : memory_requests(pod, container)) {
      if (container.sidecar)
        sidecars[resource] += size;
      else
        starting[resource] = std::max(starting[resource], sidecars[resource] + size);
    }
  for (const Container& container : pod.containers)
    for (const auto& [resource, size] : memory_requests(pod, container))
      running[resource] += size;
  for (auto& [resource, size] : running)
    size = std::max(size + sidecars[resource], starting[resource]);
  return running;
}

Bytes reusable_on(const MemoryState& state, const Pod& pod, NodeSet nodes,
                  const std::string& resource) {
  if (state.reusable.pod != pod.uid) return {};
  const auto size = state.reusable.sizes.find({nodes, resource});
  return size == state.reusable.sizes.end() ? Bytes{} : size->second;
}

HintList memory_hints(const MemoryState& state, const Pod& pod, const ResourceSizes& requested) {
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

tl::expected<NodeSet, MemoryRefusal> choose_nodes(const MemoryState& state, const Pod& pod,
                                                  const ResourceSizes& requested,
                                                  const NumaHint& affinity) {
  NumaHint chosen = affinity;
  if (!chosen.nodes) {
    if (requested.empty()) return tl::make_unexpected(MemoryRefusal::kNoDefaultAffinity);
    const auto best = best_of(memory_hints(state, pod, requested), NodeSet{});
    if (!best) return tl::make_unexpected(MemoryRefusal::kNoDefaultAffinity);
    if (affinity.preferred && !best->preferred)
      return tl::make_unexpected(MemoryRefusal::kDefaultNotPreferred);
    chosen = *best;
  }
  // The hint may be narrower than what memory needs: other providers had a part in it.
  if (!has_enough(state, /*reusing=*/nullptr, *chosen.nodes, requested)) {
    const auto best = best_of(memory_hints(state, pod, requested), *chosen.nodes);
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

}  // namespace headroom
