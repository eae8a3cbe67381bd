// SPDX-License-Identifier: Apache-2.0
// StaticPolicy, part 2: the CPUs of a pod with resources of its own, its pool, which its containers
// divide (kubelet: AllocatePod of cm/cpumanager/policy_static.go).
#include "judge/cpuset/policy/static_policy.h"

#include <utility>

namespace headroom {
namespace {

constexpr const char* kCpu = "cpu";

template <class Use>
void for_each_container(const Pod& pod, Use use) {
  for (const auto* const list : {&pod.init_containers, &pod.containers})
    for (const Container& container : *list)
      use(container);
}

// Whether each container of the pod has its part.
bool is_divided(const CpuState& state, const Pod& pod) {
  bool divided = true;
  for_each_container(pod, [&](const Container& container) {
    divided = divided && exclusive_cpus(state, pod.uid, container.name);
  });
  return divided;
}

}  // namespace

std::optional<EmptyPodPool> StaticPolicy::find_empty_pod_pool(const Pod& pod, int count) const {
  const auto part_of = [&](const Container& container) {
    const int own = exclusive_cpus_requested(pod, container, pod_level_mode());
    return own == 0 ? PoolAmounts{} : PoolAmounts{{kCpu, own}};
  };
  const auto empty = find_empty_pool(pod, {{kCpu, count}}, part_of);
  if (!empty) return std::nullopt;
  if (empty->for_init_container)
    return EmptyPodPool{
        "pod rejected, pod has shared init containers but no cpus available for them"};
  return EmptyPodPool{
      "pod rejected, sum of exclusive container cpu requests equals pod budget, leaving no cpus "
      "for shared containers"};
}

// The kubelet compares what each container has with what it requests, and so finds no hint for a
// pod that has its pool if some of its containers share.
ProviderHints StaticPolicy::pool_hints(const CpuState& state, const Pod& pod, int count) const {
  const ProviderHints impossible{{kCpu, HintList{}}};
  if (find_empty_pod_pool(pod, count)) return impossible;
  const auto pool = state.pod_entries.find(pod.uid);
  if (pool == state.pod_entries.end()) return hints_for(count, available(state), {});
  return pool->second.size() == count ? hints_for(count, pool->second, {}) : impossible;
}

// An ordinary init container runs before those after it: what it has is divided among them again.
// One that has no part of its own shares all but the sidecars' parts.
tl::expected<ContainerCpus, CpuRefusal> StaticPolicy::divide(const CpuSet& pool,
                                                             const Pod& pod) const {
  const TakeRules rules = take_rules(config_.options, topology());
  ContainerCpus parts;
  CpuSet left = pool;
  for (const Container& container : pod.init_containers) {
    const int own = exclusive_cpus_requested(pod, container, pod_level_mode());
    if (own == 0) {
      if (!container.sidecar) parts[container.name] = left;
      continue;
    }
    TakeResult taken = take(topology(), left, own, rules);
    if (!taken) return tl::make_unexpected(CpuRefusal{taken.error()});
    if (container.sidecar) left -= *taken;
    parts[container.name] = *std::move(taken);
  }
  for (const Container& container : pod.containers) {
    const int own = exclusive_cpus_requested(pod, container, pod_level_mode());
    if (own == 0) continue;
    TakeResult taken = take(topology(), left, own, rules);
    if (!taken) return tl::make_unexpected(CpuRefusal{taken.error()});
    left -= *taken;
    parts[container.name] = *std::move(taken);
  }
  for_each_container(pod,
                     [&](const Container& container) { parts.try_emplace(container.name, left); });
  return parts;
}

// The kubelet takes a second pool for a pod that is admitted again after a restart, and loses the
// first one.
tl::expected<CpuState, CpuRefusal> StaticPolicy::allocate_pod(
    CpuState state, const Pod& pod, std::optional<NodeSet> affinity) const {
  const int count = exclusive_cpus_requested(pod, pod_level_mode());
  if (count == 0) return state;
  CpuSet pool;
  if (const auto has = state.pod_entries.find(pod.uid); has != state.pod_entries.end()) {
    if (is_divided(state, pod)) return state;
    pool = has->second;
  } else {
    if (auto empty = find_empty_pod_pool(pod, count))
      return tl::make_unexpected(CpuRefusal{*std::move(empty)});
    if (auto refusal = check_smt_alignment(available(state), count))
      return tl::make_unexpected(*std::move(refusal));
    TakeResult taken = take_with_affinity(available(state), count, affinity);
    if (!taken) return tl::make_unexpected(CpuRefusal{taken.error()});
    pool = *std::move(taken);
  }
  auto parts = divide(pool, pod);
  if (!parts) return tl::make_unexpected(parts.error());
  state.default_set -= pool;
  state.entries[pod.uid] = *std::move(parts);
  state.pod_entries[pod.uid] = std::move(pool);
  return state;
}

}  // namespace headroom
