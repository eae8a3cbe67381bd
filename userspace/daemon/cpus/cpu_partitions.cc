// SPDX-License-Identifier: Apache-2.0
// CpuManager, part 3: makes the cgroups of pods with only exclusive CPUs isolated partitions, so
// that the kernel balances no load there and no other task of the machine runs there.
//
// The pod's cgroup is the partition, not its containers': a cgroup that passes all its CPUs on
// would itself run on all other CPUs.
#include "base/log/journal.h"
#include "daemon/cpus/cpu_manager.h"
#include "judge/cpuset/repack.h"

#include <algorithm>
#include <utility>

namespace headroom::daemon {
namespace {

// "/a/b/c": "/a", "/a/b".
std::vector<std::string> ancestor_paths(const std::string& path) {
  std::vector<std::string> all;
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1))
    all.push_back(path.substr(0, slash));
  return all;
}

bool is_partition(const std::string& state) {
  return !state.empty() && state != "member";
}

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

// Absent: one of its containers shares, or it has no CPUs of its own.
std::optional<CpuSet> CpuManager::own_cpus(const PresentPod& present) const {
  if (!present.pod) return std::nullopt;
  CpuSet own;
  bool all = true;
  for_each_container(*present.pod, [&](const Container& container) {
    const CpuSet* const cpus = exclusive_cpus(state_, present.cgroup->uid, container.name);
    all = all && cpus;
    if (cpus) own |= *cpus;
  });
  return all && !own.empty() ? std::optional(own) : std::nullopt;
}

CpuManager::Partitions CpuManager::desired_partitions() const {
  Partitions wanted;
  if (!policy_ || options_.cpus.partition != config::CpusConfig::Partition::kIsolated)
    return wanted;
  for (const PresentPod& present : present_)
    if (auto own = own_cpus(present)) wanted.emplace(present.cgroup->path, *std::move(own));
  return wanted;
}

// Before any CPU changes owner: the kernel takes no CPUs from a partition. A small file is read for
// each pod even if no pod is to be isolated: a partition made by another program or an earlier
// daemon must not keep its CPUs.
void CpuManager::end_partitions(const Partitions& wanted) {
  for (const observe::PodCgroup& pod : tree_.pods) {
    if (!is_partition(partition_.state(pod.path))) continue;
    const auto desired = wanted.find(pod.path);
    if (desired != wanted.end() && cpus_of(pod.path) == desired->second) continue;
    if (auto result = partition_.make_member(pod.path); !result)
      log::error("{}: {}", pod.path, result.error().what);
  }
  std::erase_if(isolated_, [&](const auto& each) { return !wanted.contains(each.first); });
  std::erase_if(isolation_failures_,
                [&](const auto& each) { return !wanted.contains(each.first); });
}

// What the cgroups above have to hand down, also when that is nothing any more.
void CpuManager::delegate_exclusive(const Partitions& wanted) {
  Partitions exclusive;
  for (const observe::PodCgroup& pod : tree_.pods)
    for (const std::string& path : ancestor_paths(pod.path))
      exclusive.try_emplace(path);
  for (const std::string& root : tree_.roots)
    exclusive.try_emplace(root);
  for (const auto& [pod, cpus] : wanted)
    for (const std::string& path : ancestor_paths(pod))
      exclusive[path] |= cpus;
  for (const auto& [path, cpus] : exclusive)
    if (auto done = partition_.delegate_exclusive(path, cpus); !done)
      log::error("{}: {}", path, done.error().what);
}

void CpuManager::start_partitions(const Partitions& wanted) {
  if (wanted.empty() && !may_have_partitions_) return;
  may_have_partitions_ = !wanted.empty();
  delegate_exclusive(wanted);
  for (const auto& [path, cpus] : wanted)
    if (cpus_of(path) == cpus) isolate(path, cpus);
}

// Where the kernel said no, it is asked again for other CPUs only.
void CpuManager::isolate(const std::string& path, const CpuSet& cpus) {
  const auto refused = isolation_failures_.find(path);
  if (refused != isolation_failures_.end() && refused->second.cpus == cpus) return;
  if (partition_.state(path) != "isolated") {
    if (const auto done = partition_.isolate(path, cpus); !done) {
      isolated_.erase(path);
      isolation_failures_[path] = {cpus, done.error().what};
      log::warning("{}: not an isolated partition, its CPUs are its own none the less: {}", path,
                   done.error().what);
      return;
    }
    log::info("{}: an isolated partition of the CPUs {}", path, cpus.format());
  }
  isolation_failures_.erase(path);
  isolated_[path] = cpus;
}

bool CpuManager::partition_lost() const {
  for (const auto& [path, cpus] : isolated_)
    if (const std::string state = partition_.state(path); !state.empty() && state != "isolated")
      return true;
  return false;
}

std::string CpuManager::partition_of(const std::string& path) const {
  if (isolated_.contains(path)) return "isolated";
  const auto refused = isolation_failures_.find(path);
  return refused == isolation_failures_.end() ? "member" : refused->second.why;
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
