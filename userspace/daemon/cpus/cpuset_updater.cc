// SPDX-License-Identifier: Apache-2.0
#include "daemon/cpus/cpuset_updater.h"

#include "base/log/journal.h"

#include <algorithm>
#include <utility>
#include <vector>

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

}  // namespace

// A small file is read for each pod even if no pod is to be isolated: a partition made by another
// program or an earlier daemon must not keep its CPUs.
void CpuPartitions::end(const observe::PodTree& tree, const Wanted& wanted) {
  for (const observe::PodCgroup& pod : tree.pods) {
    if (!is_partition(partition_.state(pod.path))) continue;
    const auto desired = wanted.find(pod.path);
    const SeenCgroup cgroup = tree.cgroup(pod.path);
    if (desired != wanted.end() && has_cpus(cgroup, desired->second)) continue;
    if (auto result = partition_.make_member(cgroup); !result)
      log::error("{}: {}", pod.path, result.error().what);
  }
  std::erase_if(isolated_, [&](const auto& each) { return !wanted.contains(each.first); });
  std::erase_if(failures_, [&](const auto& each) { return !wanted.contains(each.first); });
}

// Sets the CPUs that the cgroups above pass on, also if there are none any more.
void CpuPartitions::delegate_exclusive(const observe::PodTree& tree, const Wanted& wanted) {
  Wanted exclusive;
  for (const observe::PodCgroup& pod : tree.pods)
    for (const std::string& path : ancestor_paths(pod.path))
      exclusive.try_emplace(path);
  for (const std::string& root : tree.roots)
    exclusive.try_emplace(root);
  for (const auto& [pod, cpus] : wanted)
    for (const std::string& path : ancestor_paths(pod))
      exclusive[path] |= cpus;
  for (const auto& [path, cpus] : exclusive)
    if (auto done = partition_.delegate_exclusive(tree.cgroup(path), cpus); !done)
      log::error("{}: {}", path, done.error().what);
}

void CpuPartitions::start(const observe::PodTree& tree, const Wanted& wanted) {
  if (wanted.empty() && !may_exist_) return;
  may_exist_ = !wanted.empty();
  delegate_exclusive(tree, wanted);
  for (const auto& [path, cpus] : wanted)
    if (const SeenCgroup cgroup = tree.cgroup(path); has_cpus(cgroup, cpus)) isolate(cgroup, cpus);
}

// After a refusal by the kernel, the next attempt is made only for other CPUs.
void CpuPartitions::isolate(const SeenCgroup& cgroup, const CpuSet& cpus) {
  const std::string& path = cgroup.path;
  const auto refused = failures_.find(path);
  if (refused != failures_.end() && refused->second.cpus == cpus) return;
  if (partition_.state(path) != "isolated") {
    if (const auto done = partition_.isolate(cgroup, cpus); !done) {
      isolated_.erase(path);
      if (!has_cpus(cgroup, cpus)) return;  // removed since
      failures_[path] = {cpus, done.error().what};
      log::warning("{}: not an isolated partition, its CPUs are its own none the less: {}", path,
                   done.error().what);
      return;
    }
    log::info("{}: an isolated partition of the CPUs {}", path, cpus.format());
  }
  failures_.erase(path);
  isolated_[path] = cpus;
}

bool CpuPartitions::lost() const {
  for (const auto& [path, cpus] : isolated_)
    if (const std::string state = partition_.state(path); !state.empty() && state != "isolated")
      return true;
  return false;
}

std::string CpuPartitions::state(const std::string& path) const {
  if (isolated_.contains(path)) return "isolated";
  const auto refused = failures_.find(path);
  return refused == failures_.end() ? "member" : refused->second.why;
}

namespace {

// Stages: releasing CPUs, temporary moves, taking CPUs; more if containers are in pods that move.
constexpr int kMaxStages = 8;
// Calls of setup_.pause for one stage: systemd answers before it writes.
constexpr int kMaxPauses = 100;

const CpuTarget* find(const std::vector<CpuTarget>& targets, const std::string& path) {
  const auto found = std::ranges::find(targets, path, &CpuTarget::path);
  return found == targets.end() ? nullptr : &*found;
}

}  // namespace

// Cgroups that were removed since are dropped: the next pass is about those that have their paths.
void CpusetUpdater::read_current(std::vector<CpuTarget>& targets) const {
  std::erase_if(targets, [&](CpuTarget& target) {
    const auto cpus = cpus_of(target);
    if (cpus) target.has = *cpus;
    return !cpus;
  });
}

void CpusetUpdater::count_drift(const std::vector<CpuTarget>& targets) {
  for (const CpuTarget& target : targets) {
    const auto applied = applied_.find(target.path);
    if (applied == applied_.end() || applied->second.cpus != target.wanted) continue;
    if (applied->second.cgroup != target.cgroup || target.has == target.wanted) continue;
    ++counters_.repaired;
    log::warning("{}: its CPUs were changed to {} by another program; restoring {}", target.path,
                 target.has.format(), target.wanted.format());
  }
}

bool CpusetUpdater::prepare(const std::vector<CpuWrite>& writes, std::vector<CpuTarget>& targets) {
  std::vector<std::string> paths;
  for (const CpuWrite& one : writes)
    paths.push_back(one.path);
  const auto prepared = setup_.prepare(paths);
  if (prepared) return true;
  log::error("{}: no cpuset is written", prepared.error().what);
  counters_.failed += paths.size();
  for (const std::string& path : paths)
    std::ranges::find(targets, path, &CpuTarget::path)->stuck = true;
  return false;
}

void CpusetUpdater::write(const std::vector<CpuWrite>& writes, std::vector<CpuTarget>& targets,
                          bool unlimited) {
  if (!unlimited && !prepare(writes, targets)) return;
  for (const CpuWrite& one : writes) {
    ++counters_.writes;
    const auto target = std::ranges::find(targets, one.path, &CpuTarget::path);
    const auto done =
        setup_.write({.path = one.path, .id = target->cgroup}, unlimited ? CpuSet() : one.cpus);
    if (done) continue;
    if (!cpus_of(*target)) continue;  // removed since
    ++counters_.failed;
    log::error("{}: {}", one.path, done.error().what);
    target->stuck = true;
  }
}

void CpusetUpdater::wait_for(const std::vector<CpuWrite>& writes, std::vector<CpuTarget>& targets) {
  const auto applied = [&](const CpuWrite& write) {
    const CpuTarget* const target = find(targets, write.path);
    const auto cpus = cpus_of(*target);
    return !cpus || *cpus == write.cpus || target->stuck;
  };
  for (int i = 0; i < kMaxPauses && !std::ranges::all_of(writes, applied); ++i)
    setup_.pause();
  for (const CpuWrite& write : writes) {
    const auto target = std::ranges::find(targets, write.path, &CpuTarget::path);
    const auto cpus = cpus_of(*target);
    if (target->stuck || !cpus || *cpus == write.cpus || *cpus != target->has) continue;
    target->stuck = true;
    ++counters_.failed;
    log::error("{}: it was given the CPUs {} and still has {}", write.path, write.cpus.format(),
               cpus->format());
  }
}

void CpusetUpdater::apply(std::vector<CpuTarget> targets, const CpuSet& shared, bool unlimited) {
  read_current(targets);
  count_drift(targets);
  for (int stage = 0; stage < kMaxStages; ++stage) {
    const std::vector<CpuWrite> writes = next_writes(targets, shared);
    if (writes.empty()) break;
    write(writes, targets, unlimited);
    wait_for(writes, targets);
    read_current(targets);
  }
  for (const CpuTarget& target : targets)
    if (target.has == target.wanted) applied_[target.path] = {target.cgroup, target.wanted};
}

void CpusetUpdater::forget_removed() {
  std::erase_if(applied_, [&](const auto& applied) { return !cpus_at(applied.first); });
}

bool CpusetUpdater::drifted() const {
  return std::ranges::any_of(applied_, [&](const auto& applied) {
    const auto cpus = cpus_at(applied.first);
    return cpus && *cpus != applied.second.cpus;
  });
}

}  // namespace headroom::daemon
