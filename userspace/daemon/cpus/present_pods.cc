// SPDX-License-Identifier: Apache-2.0
#include "daemon/cpus/present_pods.h"

#include "judge/cpuset/cpu_admission.h"
#include "judge/cpuset/policy/static_policy.h"

#include <algorithm>
#include <utility>

namespace headroom::daemon {
namespace {

// Represents a pod without a manifest that still has exclusive CPUs or memory; it keeps them.
Pod placeholder_pod(const std::string& uid, const ContainerCpus& cpus,
                    const ContainerMemory& memory) {
  Pod pod;
  pod.uid = uid;
  pod.name = uid;
  pod.pod_namespace.clear();
  pod.declared_qos = QosClass::kGuaranteed;
  std::map<std::string, ResourceList> containers;
  for (const auto& [name, set] : cpus)
    containers[name].emplace("cpu", Quantity::of(set.size()));
  for (const auto& [name, blocks] : memory)
    for (const MemoryBlock& block : blocks)
      containers[name][block.type] += Quantity::of(block.size.count);
  for (const auto& [name, all] : containers)
    pod.containers.push_back({.name = name, .requests = all, .limits = all});
  return pod;
}

template <class Entries>
typename Entries::mapped_type entry_of(const Entries& entries, const std::string& uid) {
  const auto found = entries.find(uid);
  return found == entries.end() ? typename Entries::mapped_type() : found->second;
}

}  // namespace

void PresentPods::set_declared(std::vector<Pod> manifests) {
  manifests_.clear();
  for (Pod& pod : manifests) {
    std::string uid = pod.uid;
    manifests_.try_emplace(std::move(uid), std::make_shared<const Pod>(std::move(pod)));
  }
}

const std::shared_ptr<const Pod>& PresentPods::manifest(const std::string& uid) const {
  static const std::shared_ptr<const Pod> none;
  const auto found = manifests_.find(uid);
  return found == manifests_.end() ? none : found->second;
}

std::map<std::string, std::string> PresentPods::names_by_path(
    const observe::PodCgroup& cgroup) const {
  std::map<std::string, std::string> names;
  if (const auto& pod = manifest(cgroup.uid))
    for (const auto& [name, path] : containers_of(*pod, cgroup, identify_))
      names.emplace(path, name);
  return names;
}

std::shared_ptr<const Pod> PresentPods::pod_of(const observe::PodCgroup& cgroup,
                                               const CpuState& state,
                                               const PodMemory& memory) const {
  if (const auto& declared = manifest(cgroup.uid)) {
    auto raised = with_admitted_cpus(*declared, state);
    return raised ? std::make_shared<const Pod>(*std::move(raised)) : declared;
  }
  const bool known = state.entries.contains(cgroup.uid) || memory.contains(cgroup.uid);
  if (!known || !cgroup.populated) return nullptr;
  return std::make_shared<const Pod>(placeholder_pod(
      cgroup.uid, entry_of(state.entries, cgroup.uid), entry_of(memory, cgroup.uid)));
}

std::vector<std::string> PresentPods::update(const CpuState& state, const PodMemory& memory) {
  std::vector<std::string> added;
  std::map<std::string, std::uint64_t, std::less<>> arrivals;
  // Among pods that are new in the same pass, those that already have CPUs or memory come first.
  for (const bool known : {true, false})
    for (const observe::PodCgroup& cgroup : tree_.pods) {
      if ((state.entries.contains(cgroup.uid) || memory.contains(cgroup.uid)) != known) continue;
      const auto before = arrivals_.find(cgroup.uid);
      if (before == arrivals_.end()) added.push_back(cgroup.uid);
      arrivals[cgroup.uid] = before == arrivals_.end() ? next_arrival_++ : before->second;
    }
  arrivals_ = std::move(arrivals);
  present_.clear();
  for (const observe::PodCgroup& cgroup : tree_.pods) {
    PresentPod present{cgroup, pod_of(cgroup, state, memory), {}};
    if (present.pod) present.containers = containers_of(*present.pod, cgroup, identify_);
    present_.push_back(std::move(present));
  }
  std::ranges::stable_sort(present_, {}, [&](const PresentPod& present) {
    return arrivals_.find(present.cgroup.uid)->second;
  });
  return added;
}

MilliCpu PresentPods::shared_pool_requests() const {
  MilliCpu requested{};
  for (const observe::SharedPoolPod& one : tree_.shared_pool_pods)
    if (const auto& pod = manifest(one.uid)) requested.count += shared_pool_request(*pod, {}).count;
  return requested;
}

int PresentPods::without_request() const {
  const auto guaranteed = std::ranges::count_if(
      present_, [](const PresentPod& one) { return !one.pod && one.cgroup.populated; });
  const auto others =
      std::ranges::count_if(tree_.shared_pool_pods, [&](const observe::SharedPoolPod& one) {
        return !manifest(one.uid) && observe::is_populated(cgroup_root_, one.path);
      });
  return static_cast<int>(guaranteed + others);
}

}  // namespace headroom::daemon
