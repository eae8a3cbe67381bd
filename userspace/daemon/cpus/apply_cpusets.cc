// SPDX-License-Identifier: Apache-2.0
// CpuManager, part 2: from the assignment of CPUs to what the cgroups contain.
#include "base/log/journal.h"
#include "daemon/cpus/cpu_manager.h"
#include "observe/pod/pod_cgroup_path.h"

#include <algorithm>

namespace headroom::daemon {
namespace {

// A stage for releases, detours and claims; more where containers lie within moving pods.
constexpr int kMaxStages = 8;
// Of setup_.pause, for one stage: systemd answers before it writes.
constexpr int kMaxPauses = 100;

const CpuTarget* find(const std::vector<CpuTarget>& targets, const std::string& path) {
  const auto found = std::ranges::find(targets, path, &CpuTarget::path);
  return found == targets.end() ? nullptr : &*found;
}

}  // namespace

// A pod has what its containers have together, and so has whatever else of it there is. The kernel
// lets nothing run in a cgroup but on CPUs of those above, so an init container that shares has the
// shared pool let into its pod, for as long as it is there; the kubelet, which leaves the pod's own
// cgroup without a limit, needs not.
void CpuManager::add_targets(const PresentPod& present, std::vector<CpuTarget>& targets) const {
  const CpuSet pool = shared();
  const auto own = [&](const std::string& name) {
    return exclusive_cpus(state_, present.cgroup->uid, name);
  };
  CpuSet of_pod;
  if (present.pod)
    for_each_container(*present.pod, [&](const Container& container) {
      if (const CpuSet* const cpus = own(container.name)) of_pod |= *cpus;
    });
  if (of_pod.empty()) of_pod = pool;
  const auto shares = [&](const Container& container) { return !own(container.name); };
  const auto starts = [&](const Container& container) {
    return shares(container) && (container.sidecar || present.containers.contains(container.name));
  };
  if (present.pod && (std::ranges::any_of(present.pod->containers, shares) ||
                      std::ranges::any_of(present.pod->init_containers, starts)))
    of_pod |= pool;
  targets.push_back({present.cgroup->path, {}, of_pod});
  for (const auto& [name, path] : present.containers)
    targets.push_back({path, {}, own(name) ? *own(name) : pool});
}

std::vector<CpuTarget> CpuManager::targets() const {
  std::vector<CpuTarget> targets;
  for (const std::string& path : tree_.sharing)
    targets.push_back({path, {}, shared()});
  // An empty cgroup without a manifest is one that is ending: setting a property of its unit would
  // make systemd keep it.
  for (const PresentPod& present : present_)
    if (present.pod || present.cgroup->populated) add_targets(present, targets);
  // CPUs that the pods' cgroup may not use cannot be given to a cgroup in it.
  for (const std::string& root : tree_.roots) {
    auto allowed = cpus_of(root);
    if (!allowed) continue;
    *allowed |= partition_.exclusive(root);  // what it handed down it does not run on
    for (CpuTarget& target : targets) {
      if (!target.path.starts_with(root + "/") || target.wanted.subset_of(*allowed)) continue;
      target.wanted &= *allowed;
      if (target.wanted.empty()) target.wanted = *allowed;
    }
  }
  return targets;
}

// Those that are gone meanwhile are no longer any.
void CpuManager::read_current_cpus(std::vector<CpuTarget>& targets) const {
  std::erase_if(targets, [&](CpuTarget& target) {
    const auto cpus = cpus_of(target.path);
    if (cpus) target.has = *cpus;
    return !cpus;
  });
}

void CpuManager::count_drift(const std::vector<CpuTarget>& targets) {
  for (const CpuTarget& target : targets) {
    const auto applied = applied_.find(target.path);
    if (applied == applied_.end() || applied->second != target.wanted) continue;
    if (target.has == target.wanted) continue;
    ++counts_.repaired;
    log::warning("{}: its CPUs were changed to {} by another program; restoring {}", target.path,
                 target.has.format(), target.wanted.format());
  }
}

void CpuManager::write_cpusets(const std::vector<CpuWrite>& writes,
                               std::vector<CpuTarget>& targets) {
  for (const CpuWrite& write : writes) {
    ++counts_.writes;
    written_paths_.insert(write.path);
    // Under the policy none no container has CPUs of its own.
    const auto done = setup_.write(write.path, policy_ ? write.cpus : CpuSet());
    if (done) continue;
    if (!cpus_of(write.path)) continue;  // gone meanwhile
    ++counts_.failed;
    log::error("{}: {}", write.path, done.error().what);
    std::ranges::find(targets, write.path, &CpuTarget::path)->stuck = true;
  }
}

void CpuManager::wait_for_writes(const std::vector<CpuWrite>& writes,
                                 std::vector<CpuTarget>& targets) {
  const auto applied = [&](const CpuWrite& write) {
    const auto cpus = cpus_of(write.path);
    return !cpus || *cpus == write.cpus || find(targets, write.path)->stuck;
  };
  for (int i = 0; i < kMaxPauses && !std::ranges::all_of(writes, applied); ++i)
    setup_.pause();
  for (const CpuWrite& write : writes) {
    const auto target = std::ranges::find(targets, write.path, &CpuTarget::path);
    const auto cpus = cpus_of(write.path);
    if (target->stuck || !cpus || *cpus == write.cpus || *cpus != target->has) continue;
    target->stuck = true;
    ++counts_.failed;
    log::error("{}: it was given the CPUs {} and still has {}", write.path, write.cpus.format(),
               cpus->format());
  }
}

void CpuManager::apply() {
  const Partitions partitions = desired_partitions();
  end_partitions(partitions);
  std::vector<CpuTarget> all = targets();
  read_current_cpus(all);
  count_drift(all);
  for (int stage = 0; stage < kMaxStages; ++stage) {
    const std::vector<CpuWrite> writes = next_writes(all, shared());
    if (writes.empty()) break;
    write_cpusets(writes, all);
    wait_for_writes(writes, all);
    read_current_cpus(all);
  }
  for (const CpuTarget& target : all)
    if (target.has == target.wanted) applied_[target.path] = target.wanted;
  start_partitions(partitions);
}

// A pod that is described may come back, and is then to have its CPUs from the first instant.
void CpuManager::forget_removed() {
  const observe::PodCgroupParser layout(setup_.pods_cgroup);
  std::erase_if(applied_, [&](const auto& applied) { return !cpus_of(applied.first); });
  std::erase_if(written_paths_, [&](const std::string& path) {
    if (cpus_of(path)) return false;
    const auto place = layout.place(path);
    if (place && manifests_.contains(place->uid)) return false;
    setup_.remove_drop_in(path);
    return true;
  });
}

bool CpuManager::drifted() const {
  const auto online = observe::read_online_cpus(setup_.sys);
  if (online && machine_ && *online != machine_->topology.cpus()) return true;
  if (enforces() && partition_lost()) return true;
  return enforces() && std::ranges::any_of(applied_, [&](const auto& applied) {
           const auto cpus = cpus_of(applied.first);
           return cpus && *cpus != applied.second;
         });
}

}  // namespace headroom::daemon
