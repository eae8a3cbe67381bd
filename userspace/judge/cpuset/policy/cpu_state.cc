// SPDX-License-Identifier: Apache-2.0
#include "judge/cpuset/policy/cpu_state.h"

#include "judge/memory/memory_state.h"
#include "judge/resources/pod_level.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace headroom {
namespace {

const Pod* find(std::span<const Pod* const> pods, std::string_view uid) {
  const auto found = std::ranges::find(pods, uid, &Pod::uid);
  return found == pods.end() ? nullptr : *found;
}

CpuState without_pod_entry(CpuState state, std::string_view pod) {
  const auto entry = state.pod_entries.find(pod);
  if (entry == state.pod_entries.end()) return state;
  const CpuSet freed = entry->second;
  state.pod_entries.erase(entry);
  state.default_set |= freed - assigned_cpus(state);
  return state;
}

}  // namespace

CpuIsolation cpu_isolation(const CpuState& state, const Pod& pod, const Container& container) {
  if (!exclusive_cpus(state, pod.uid, container.name)) return CpuIsolation::kHost;
  if (!state.pod_entries.contains(pod.uid)) return CpuIsolation::kContainer;
  const auto cpu = container.limits.find("cpu");
  const bool own = is_guaranteed(container) && cpu->second == Quantity::of(cpu->second.value());
  return own ? CpuIsolation::kContainer : CpuIsolation::kPod;
}

const CpuSet* exclusive_cpus(const CpuState& state, std::string_view pod,
                             std::string_view container) {
  const auto containers = state.entries.find(pod);
  if (containers == state.entries.end()) return nullptr;
  const auto cpus = containers->second.find(container);
  return cpus == containers->second.end() ? nullptr : &cpus->second;
}

int cpus_at_admission(const CpuState& state, std::string_view pod, std::string_view container) {
  if (const auto containers = state.admitted.find(pod); containers != state.admitted.end())
    if (const auto count = containers->second.find(container); count != containers->second.end())
      return count->second;
  const CpuSet* const cpus = exclusive_cpus(state, pod, container);
  return cpus ? cpus->size() : 0;
}

PodCpuCounts changed_counts(const CpuState& state, const CpuState& next) {
  PodCpuCounts counts;
  for (const auto& [uid, containers] : next.entries) {
    if (next.pod_entries.contains(uid)) continue;
    for (const auto& [name, cpus] : containers) {
      const int admitted = cpus_at_admission(state, uid, name);
      if (admitted > 0 && admitted != cpus.size()) counts[uid][name] = admitted;
    }
  }
  return counts;
}

CpuSet assigned_cpus(const CpuState& state) {
  CpuSet assigned;
  for (const auto& [pod, containers] : state.entries)
    for (const auto& [container, cpus] : containers)
      assigned |= cpus;
  for (const auto& [pod, cpus] : state.pod_entries)
    assigned |= cpus;
  return assigned;
}

CpuSet reusable_cpus(const CpuState& state, const Pod& pod) {
  CpuSet finished;
  CpuSet held;
  const auto add = [&](CpuSet& to, const Container& container) {
    if (const CpuSet* const cpus = exclusive_cpus(state, pod.uid, container.name)) to |= *cpus;
  };
  for (const Container& container : pod.init_containers)
    add(container.sidecar ? held : finished, container);
  for (const Container& container : pod.containers)
    add(held, container);
  return finished - held;
}

CpuState release_cpus(CpuState state, std::string_view pod, std::string_view container) {
  const auto containers = state.entries.find(pod);
  if (containers == state.entries.end()) return state;
  const auto entry = containers->second.find(container);
  if (entry == containers->second.end()) return state;
  const CpuSet freed = entry->second;
  containers->second.erase(entry);
  const bool was_last = containers->second.empty();
  if (was_last) state.entries.erase(containers);
  if (state.pod_entries.contains(pod))
    return was_last ? without_pod_entry(std::move(state), pod) : std::move(state);
  state.default_set |= freed - assigned_cpus(state);
  return state;
}

CpuState remove_stale(CpuState state, std::span<const Pod* const> active) {
  std::vector<std::pair<std::string, std::string>> stale;
  for (const auto& [uid, containers] : state.entries)
    for (const auto& [container, cpus] : containers) {
      const Pod* const pod = find(active, uid);
      if (!pod || !has_container(*pod, container)) stale.emplace_back(uid, container);
    }
  for (const auto& [uid, container] : stale)
    state = release_cpus(std::move(state), uid, container);
  std::vector<std::string> stale_pods;
  for (const auto& [uid, cpus] : state.pod_entries)
    if (!find(active, uid)) stale_pods.push_back(uid);
  for (const std::string& uid : stale_pods)
    state = without_pod_entry(std::move(state), uid);
  return state;
}

}  // namespace headroom
