// SPDX-License-Identifier: Apache-2.0
// CpuManager, part 3: what headroomctl and the metrics show.
#include "daemon/cpus/cpu_manager.h"
#include "judge/cpuset/policy/static_policy.h"

#include <string>
#include <utility>

namespace headroom::daemon {

// What the manifest requests, which after a resize may be less than at the admission.
int CpuManager::requested_now(const PresentPod& present, const Container& container) const {
  const PodLevelMode mode = pod_level_mode();
  int requested = exclusive_cpus_requested(*present.pod, container, mode);
  if (const auto& manifest = pods_.manifest(present.cgroup.uid))
    for_each_container(*manifest, [&](const Container& each) {
      if (each.name == container.name) requested = exclusive_cpus_requested(*manifest, each, mode);
    });
  return requested;
}

report::CpusView CpuManager::view() const {
  report::CpusView view = counts_;
  view.writes = cpusets_.counters().writes;
  view.failed = cpusets_.counters().failed;
  view.repaired = cpusets_.counters().repaired;
  view.mode = name(options_.cpus.mode);
  view.policy = name(options_.cpus.policy);
  view.topology_scope = options_.cpus.topology_scope;
  view.error = error_;
  view.memory = memory_.view(pods_, view.mode);
  if (!machine_) return view;
  view.places.assign(machine_->topology.places().begin(), machine_->topology.places().end());
  view.offline = machine_->offline;
  view.isolated = machine_->isolated;
  view.nohz_full = machine_->nohz_full;
  view.shared = shared();
  if (!policy_) return view;
  view.reserved = policy_->reserved();
  view.pool = pool_;
  view.pool_unknown = pods_.without_request();
  view.pool_limit_enforced = options_.cpus.guard_shared_pool;
  for (const PresentPod& present : pods_.all()) {
    if (!present.pod) continue;
    const auto refused = refused_.find(present.pod->uid);
    for_each_container(*present.pod, [&](const Container& container) {
      const bool shares = cpu_isolation(state_, *present.pod, container) == CpuIsolation::kPod;
      const int wanted = shares ? 0 : requested_now(present, container);
      if (wanted == 0 && !shares) return;
      report::ContainerCpuView owner{.pod_namespace = present.pod->pod_namespace,
                                     .pod = present.pod->name,
                                     .uid = present.pod->uid,
                                     .container = container.name,
                                     .wanted = wanted};
      owner.shares_in_pod = shares;
      if (const CpuSet* const cpus = exclusive_cpus(state_, owner.uid, owner.container))
        owner.cpus = *cpus;
      owner.partition = partitions_.state(present.cgroup.path);
      if (refused != refused_.end()) owner.refusal = reason_and_message(refused->second.refusal);
      const auto [first, last] = present.containers.equal_range(container.name);
      for (auto at = first; at != last; ++at)
        if (const auto cpus = cpus_of(at->second)) owner.runs_on |= *cpus;
      view.containers.push_back(std::move(owner));
    });
  }
  return view;
}

}  // namespace headroom::daemon
