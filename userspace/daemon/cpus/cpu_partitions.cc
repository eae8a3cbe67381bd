// SPDX-License-Identifier: Apache-2.0
#include "daemon/cpus/cpu_partitions.h"

#include "base/log/journal.h"

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

// A small file is read for
// each pod even if no pod is to be isolated: a partition made by another program or an earlier
// daemon must not keep its CPUs.
void CpuPartitions::end(const observe::PodTree& tree, const Wanted& wanted) {
  for (const observe::PodCgroup& pod : tree.pods) {
    if (!is_partition(partition_.state(pod.path))) continue;
    const auto desired = wanted.find(pod.path);
    if (desired != wanted.end() && has_cpus(pod.path, desired->second)) continue;
    if (auto result = partition_.make_member(pod.path); !result)
      log::error("{}: {}", pod.path, result.error().what);
  }
  std::erase_if(isolated_, [&](const auto& each) { return !wanted.contains(each.first); });
  std::erase_if(failures_, [&](const auto& each) { return !wanted.contains(each.first); });
}

// What the cgroups above have to hand down, also when that is nothing any more.
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
    if (auto done = partition_.delegate_exclusive(path, cpus); !done)
      log::error("{}: {}", path, done.error().what);
}

void CpuPartitions::start(const observe::PodTree& tree, const Wanted& wanted) {
  if (wanted.empty() && !may_exist_) return;
  may_exist_ = !wanted.empty();
  delegate_exclusive(tree, wanted);
  for (const auto& [path, cpus] : wanted)
    if (has_cpus(path, cpus)) isolate(path, cpus);
}

// Where the kernel said no, it is asked again for other CPUs only.
void CpuPartitions::isolate(const std::string& path, const CpuSet& cpus) {
  const auto refused = failures_.find(path);
  if (refused != failures_.end() && refused->second.cpus == cpus) return;
  if (partition_.state(path) != "isolated") {
    if (const auto done = partition_.isolate(path, cpus); !done) {
      isolated_.erase(path);
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

}  // namespace headroom::daemon
