// SPDX-License-Identifier: Apache-2.0
// CpuManager, part 2: the target CPUs of each cgroup, and the repacking of exclusive CPUs.
#include "daemon/cpus/cpu_manager.h"
#include "judge/cpuset/repack.h"
#include "observe/pod/pod_cgroup_path.h"

#include <algorithm>
#include <utility>

namespace headroom::daemon {
namespace {

const char* repack_error(const config::CpusConfig& cpus, bool dry_run) {
  using Mode = config::CpusConfig::Mode;
  if (cpus.mode == Mode::kOff) return "headroom.cpus.mode is off: no CPUs are assigned";
  if (cpus.policy == config::CpusConfig::Policy::kNone)
    return "cpuManagerPolicy is none: no container has exclusive CPUs";
  if (cpus.mode == Mode::kObserve && !dry_run)
    return "mode observe moves no container: use --dry-run";
  if (cpus.memory_policy == config::CpusConfig::MemoryManagerPolicy::kStatic)
    return "memoryManagerPolicy is Static: containers stay on the NUMA nodes of their memory";
  return nullptr;
}

}  // namespace

// The pod's exclusive CPUs. Absent: one of its containers uses the shared pool or shares the pod's,
// or it has none.
std::optional<CpuSet> CpuManager::own_cpus(const PresentPod& present) const {
  if (!present.pod) return std::nullopt;
  CpuSet own;
  bool all = true;
  for_each_container(*present.pod, [&](const Container& container) {
    const CpuSet* const cpus = exclusive_cpus(state_, present.cgroup.uid, container.name);
    all = all && cpu_isolation(state_, *present.pod, container) == CpuIsolation::kContainer;
    if (cpus) own |= *cpus;
  });
  return all && !own.empty() ? std::optional(own) : std::nullopt;
}

CpuPartitions::Wanted CpuManager::desired_partitions() const {
  CpuPartitions::Wanted wanted;
  if (!policy_ || options_.cpus.partition != config::CpusConfig::Partition::kIsolated)
    return wanted;
  for (const PresentPod& present : pods_.all())
    if (auto own = own_cpus(present)) wanted.emplace(present.cgroup.path, *std::move(own));
  return wanted;
}

// A pod's cgroup has the CPUs of all its containers, and so have its other child cgroups. A cgroup
// runs only on CPUs that its ancestors have, so while an init container uses the shared pool, the
// shared pool is added to its pod; the kubelet does not need this, since it does not limit the
// pod's own cgroup.
void CpuManager::add_targets(const PresentPod& present, std::vector<CpuTarget>& targets) const {
  const CpuSet pool = shared();
  const auto own = [&](const std::string& name) {
    return exclusive_cpus(state_, present.cgroup.uid, name);
  };
  CpuSet of_pod;
  if (present.pod)
    for_each_container(*present.pod, [&](const Container& container) {
      if (const CpuSet* const cpus = own(container.name)) of_pod |= *cpus;
    });
  // The pool of a pod with resources of its own may be more than its containers have.
  const auto pod_pool = state_.pod_entries.find(present.cgroup.uid);
  if (pod_pool != state_.pod_entries.end()) of_pod = pod_pool->second;
  if (of_pod.empty()) of_pod = pool;
  const auto shares = [&](const Container& container) { return !own(container.name); };
  const auto starts = [&](const Container& container) {
    return shares(container) && (container.sidecar || present.containers.contains(container.name));
  };
  if (present.pod && (std::ranges::any_of(present.pod->containers, shares) ||
                      std::ranges::any_of(present.pod->init_containers, starts)))
    of_pod |= pool;
  targets.push_back({present.cgroup.path, {}, of_pod});
  for (const auto& [name, path] : present.containers)
    targets.push_back({path, {}, own(name) ? *own(name) : pool});
}

std::vector<CpuTarget> CpuManager::targets() const {
  std::vector<CpuTarget> targets;
  for (const std::string& path : tree().sharing)
    targets.push_back({path, {}, shared()});
  // An empty cgroup without a manifest is about to be removed: setting a property of its unit would
  // make systemd keep it.
  for (const PresentPod& present : pods_.all())
    if (present.pod || present.cgroup.populated) add_targets(present, targets);
  for (CpuTarget& target : targets)
    target.cgroup = tree().cgroup(target.path).id;
  // CPUs that the pods' cgroup may not use cannot be given to a cgroup in it.
  for (const std::string& root : tree().roots) {
    auto allowed = cpus_of(root);
    if (!allowed) continue;
    *allowed |= partitions_.passed_on(root);  // it does not run on CPUs that it passed on
    for (CpuTarget& target : targets) {
      if (!target.path.starts_with(root + "/") || target.wanted.subset_of(*allowed)) continue;
      target.wanted &= *allowed;
      if (target.wanted.empty()) target.wanted = *allowed;
    }
  }
  return targets;
}

report::RepackedContainer CpuManager::describe_move(const CpuMove& move) const {
  report::RepackedContainer one{.pod_namespace = "",
                                .pod = move.pod,
                                .uid = move.pod,
                                .container = move.container,
                                .from = move.from,
                                .to = move.to,
                                .before = cpu_spread(policy_->topology(), move.from),
                                .after = cpu_spread(policy_->topology(), move.to)};
  if (const auto& pod = pods_.manifest(move.pod)) {
    one.pod_namespace = pod->pod_namespace;
    one.pod = pod->name;
  }
  return one;
}

void CpuManager::read_current_cpus(std::vector<report::RepackedContainer>& containers) const {
  for (report::RepackedContainer& one : containers)
    for (const PresentPod& present : pods_.all()) {
      if (present.cgroup.uid != one.uid) continue;
      const auto [first, last] = present.containers.equal_range(one.container);
      for (auto at = first; at != last; ++at)
        if (const auto cpus = cpus_of(at->second)) one.runs_on |= *cpus;
    }
}

// A pod without a manifest is known only by its CPUs: it stays where it is.
Result<report::RepackView> CpuManager::repack(bool dry_run) {
  if (const char* const why = repack_error(options_.cpus, dry_run)) return failure(why);
  if (!error_.empty() || !policy_) return failure("CPU pinning does not work now: " + error_);
  std::vector<const Pod*> movable;
  for (const PresentPod& present : pods_.all())
    if (present.pod && pods_.manifest(present.cgroup.uid)) movable.push_back(present.pod.get());
  RepackPlan plan = headroom::repack(*policy_, state_, movable, pool_options());
  report::RepackView view{.dry_run = dry_run,
                          .moved_cpus = plan.moved_cpus(),
                          .before = plan.before,
                          .after = plan.after};
  for (const CpuMove& move : plan.moves)
    view.containers.push_back(describe_move(move));
  if (dry_run || plan.moves.empty()) return view;
  log_changes(plan.state);
  state_ = std::move(plan.state);
  reconcile();
  read_current_cpus(view.containers);
  return view;
}

}  // namespace headroom::daemon
