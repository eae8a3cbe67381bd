// SPDX-License-Identifier: Apache-2.0
// CpuManager, part 4: repacking on request: the judge says which container gets which CPUs, and the
// cgroups follow as always.
#include "daemon/cpus/cpu_manager.h"
#include "judge/cpuset/repack.h"

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
  return nullptr;
}

}  // namespace

report::RepackedContainer CpuManager::describe_move(const CpuMove& move) const {
  report::RepackedContainer one{.pod_namespace = "",
                                .pod = move.pod,
                                .uid = move.pod,
                                .container = move.container,
                                .from = move.from,
                                .to = move.to,
                                .before = cpu_spread(policy_->topology(), move.from),
                                .after = cpu_spread(policy_->topology(), move.to)};
  if (const auto pod = manifests_.find(move.pod); pod != manifests_.end()) {
    one.pod_namespace = pod->second->pod_namespace;
    one.pod = pod->second->name;
  }
  return one;
}

void CpuManager::read_current_cpus(std::vector<report::RepackedContainer>& containers) const {
  for (report::RepackedContainer& one : containers)
    for (const PresentPod& present : present_) {
      if (present.cgroup->uid != one.uid) continue;
      const auto [first, last] = present.containers.equal_range(one.container);
      for (auto at = first; at != last; ++at)
        if (const auto cpus = cpus_of(at->second)) one.runs_on |= *cpus;
    }
}

// A pod without a manifest is known only by its CPUs: it stays where it is.
Result<report::RepackView> CpuManager::repack(bool dry_run) {
  if (const char* const why = repack_error(options_.cpus, dry_run)) return failure(why);
  if (!last_error_.empty() || !policy_)
    return failure("CPU pinning does not work now: " + last_error_);
  std::vector<const Pod*> movable;
  for (const PresentPod& present : present_)
    if (present.pod && manifests_.contains(present.cgroup->uid))
      movable.push_back(present.pod.get());
  RepackPlan plan = headroom::repack(*policy_, state_, movable, pool_options_);
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
