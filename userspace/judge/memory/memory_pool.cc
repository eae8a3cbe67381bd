// SPDX-License-Identifier: Apache-2.0
// MemoryPolicy, part 2: the memory of a pod with resources of its own, its pool, which its
// containers divide (kubelet: AllocatePod of cm/memorymanager/policy_static.go).
#include "judge/memory/memory_hints.h"
#include "judge/memory/memory_policy.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace headroom {
namespace {

std::optional<EmptyPodPool> find_empty_pod_pool(const Pod& pod, const ResourceSizes& pool) {
  const auto amounts = [](const ResourceSizes& sizes) {
    PoolAmounts all;
    for (const auto& [resource, size] : sizes)
      all[resource] = size.count;
    return all;
  };
  const auto empty = find_empty_pool(pod, amounts(pool), [&](const Container& container) {
    return amounts(memory_requests(pod, container));
  });
  if (!empty) return std::nullopt;
  if (empty->for_init_container)
    return EmptyPodPool{"pod rejected, pod has shared init containers but no " + empty->resource +
                        " available for them"};
  return EmptyPodPool{"pod rejected, sum of exclusive container " + empty->resource +
                      " requests equals pod budget, leaving no memory for shared containers"};
}

MemoryBlocks blocks_on(NodeSet nodes, const ResourceSizes& sizes) {
  MemoryBlocks blocks;
  for (const auto& [resource, size] : sizes)
    if (size.count > 0) blocks.push_back({nodes, resource, size});
  return blocks;
}

void subtract(ResourceSizes& left, const ResourceSizes& part) {
  for (const auto& [resource, size] : part)
    if (const auto has = left.find(resource); has != left.end())
      has->second = has->second - std::min(has->second, size);
}

// An ordinary init container runs before those after it: what it has is divided among them again.
// One that has no part of its own shares all but the sidecars' parts.
ContainerMemory divide(const ResourceSizes& pool, const Pod& pod, NodeSet nodes) {
  ContainerMemory parts;
  ResourceSizes left = pool;
  for (const Container& container : pod.init_containers) {
    const ResourceSizes own = memory_requests(pod, container);
    if (own.empty() && container.sidecar) continue;
    parts[container.name] = blocks_on(nodes, own.empty() ? left : own);
    if (container.sidecar) subtract(left, own);
  }
  for (const Container& container : pod.containers) {
    const ResourceSizes own = memory_requests(pod, container);
    if (own.empty()) continue;
    parts[container.name] = blocks_on(nodes, own);
    subtract(left, own);
  }
  for (const auto* const list : {&pod.init_containers, &pod.containers})
    for (const Container& container : *list)
      parts.try_emplace(container.name, blocks_on(nodes, left));
  return parts;
}

bool is_ordinary_init(const Pod& pod, const std::string& name) {
  const auto init = std::ranges::find(pod.init_containers, name, &Container::name);
  return init != pod.init_containers.end() && !init->sidecar;
}

}  // namespace

// The kubelet compares what the pod's first container has with what the pod requests, and so has no
// preference for a pod that has its pool.
ProviderHints MemoryPolicy::pool_hints(const MemoryState& state, const Pod& pod,
                                       const ResourceSizes& requested) const {
  if (find_empty_pod_pool(pod, requested)) {
    ProviderHints impossible;
    for (const auto& [resource, size] : requested)
      impossible[resource] = HintList{};
    return impossible;
  }
  if (const auto pool = state.pod_entries.find(pod.uid); pool != state.pod_entries.end())
    return hints_again(pool->second, requested);
  return for_each_resource(requested, memory_hints(state, pod, requested));
}

tl::expected<MemoryState, MemoryPoolRefusal> MemoryPolicy::allocate_pod(
    MemoryState state, const Pod& pod, const NumaHint& affinity) const {
  if (is_served(state, pod)) return state;
  const ResourceSizes requested = memory_requests(pod, mode_);
  NodeSet nodes;
  const auto has = state.pod_entries.find(pod.uid);
  const bool had_pool = has != state.pod_entries.end();
  if (had_pool) {
    for (const MemoryBlock& block : has->second)
      nodes = nodes | block.nodes;
  } else {
    if (auto empty = find_empty_pod_pool(pod, requested))
      return tl::make_unexpected(MemoryPoolRefusal{*std::move(empty)});
    const auto chosen = choose_nodes(state, pod, requested, affinity);
    if (!chosen) return tl::make_unexpected(MemoryPoolRefusal{chosen.error()});
    nodes = *chosen;
    for (const auto& [resource, size] : requested)
      reserve_memory(state.machine, nodes, resource, size);
    state.pod_entries[pod.uid] = blocks_on(nodes, requested);
  }
  // Of a pod that had its pool before, the init containers may have finished.
  ContainerMemory parts = divide(requested, pod, nodes);
  for (auto& [name, blocks] : parts)
    if (!had_pool || !is_ordinary_init(pod, name))
      state.entries[pod.uid].try_emplace(name, std::move(blocks));
  return state;
}

}  // namespace headroom
