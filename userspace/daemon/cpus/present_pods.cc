// SPDX-License-Identifier: Apache-2.0
#include "daemon/cpus/present_pods.h"

#include "judge/cpuset/cpu_admission.h"
#include "judge/cpuset/policy/static_policy.h"

#include <algorithm>
#include <utility>

namespace headroom::daemon {
namespace {

template <class Entries>
typename Entries::mapped_type entry_of(const Entries& entries, const std::string& uid) {
  const auto found = entries.find(uid);
  return found == entries.end() ? typename Entries::mapped_type() : found->second;
}

ResourceList amounts_of(const CpuSet& cpus, const MemoryBlocks& blocks) {
  ResourceList amounts;
  if (!cpus.empty()) amounts.emplace("cpu", Quantity::of(cpus.size()));
  for (const MemoryBlock& block : blocks)
    amounts[block.type] += Quantity::of(block.size.count);
  return amounts;
}

// Represents a pod without a manifest that still has exclusive CPUs or memory; it keeps them. Which
// containers share a pool is not known, and does not count while the pod has it.
Pod placeholder_pod(const std::string& uid, const PresentPods::Assigned& assigned) {
  Pod pod;
  pod.uid = uid;
  pod.name = uid;
  pod.pod_namespace.clear();
  pod.declared_qos = QosClass::kGuaranteed;
  const ResourceList pool =
      amounts_of(entry_of(assigned.cpus.pod_entries, uid), entry_of(assigned.memory_pools, uid));
  if (!pool.empty()) pod.pod_level = Container{.name = "", .requests = pool, .limits = pool};
  const ContainerCpus cpus = entry_of(assigned.cpus.entries, uid);
  const ContainerMemory memory = entry_of(assigned.memory, uid);
  std::map<std::string, ResourceList> containers;
  for (const auto& [name, set] : cpus)
    containers[name].merge(amounts_of(set, {}));
  for (const auto& [name, blocks] : memory)
    containers[name].merge(amounts_of({}, blocks));
  for (const auto& [name, all] : containers)
    pod.containers.push_back({.name = name, .requests = all, .limits = all});
  return pod;
}

bool is_known(const PresentPods::Assigned& assigned, const std::string& uid) {
  return assigned.cpus.entries.contains(uid) || assigned.memory.contains(uid);
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
                                               const Assigned& assigned, PodLevelMode mode) const {
  if (const auto& declared = manifest(cgroup.uid)) {
    auto raised = with_admitted_cpus(*declared, assigned.cpus, mode);
    return raised ? std::make_shared<const Pod>(*std::move(raised)) : declared;
  }
  if (!is_known(assigned, cgroup.uid) || !cgroup.populated) return nullptr;
  return std::make_shared<const Pod>(placeholder_pod(cgroup.uid, assigned));
}

std::vector<std::string> PresentPods::update(const Assigned& assigned, PodLevelMode mode) {
  std::vector<std::string> added;
  std::map<std::string, std::uint64_t, std::less<>> arrivals;
  // Among pods that are new in the same pass, those that already have CPUs or memory come first.
  for (const bool known : {true, false})
    for (const observe::PodCgroup& cgroup : tree_.pods) {
      if (is_known(assigned, cgroup.uid) != known) continue;
      const auto before = arrivals_.find(cgroup.uid);
      if (before == arrivals_.end()) added.push_back(cgroup.uid);
      arrivals[cgroup.uid] = before == arrivals_.end() ? next_arrival_++ : before->second;
    }
  arrivals_ = std::move(arrivals);
  present_.clear();
  for (const observe::PodCgroup& cgroup : tree_.pods) {
    PresentPod present{cgroup, pod_of(cgroup, assigned, mode), {}};
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
