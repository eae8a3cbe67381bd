// SPDX-License-Identifier: Apache-2.0
#include "daemon/cpus/mems_updater.h"

#include "base/log/journal.h"
#include "judge/memory/memory_state.h"
#include "observe/pod/pod_cgroup_tree.h"

#include <algorithm>
#include <utility>

namespace headroom::daemon {
namespace {

// Of setup_.pause: systemd answers before it writes.
constexpr int kMaxPauses = 100;

}  // namespace

// A cgroup that is gone has what it should.
bool MemsUpdater::has(const std::string& path, NodeSet nodes) const {
  const auto own = observe::own_nodes_of_cgroup(setup_.cgroup_root, path);
  return !own || *own == nodes;
}

void MemsUpdater::write(const std::string& path, NodeSet nodes) {
  ++counters_.writes;
  written_paths_.insert(path);
  const auto done = setup_.write(path, nodes);
  for (int i = 0; done && i < kMaxPauses && !has(path, nodes); ++i)
    setup_.pause();
  if (has(path, nodes)) return;
  ++counters_.failed;
  if (done)
    log::error("{}: it was given the NUMA nodes {} and does not have them", path,
               format_nodes(nodes));
  else
    log::error("{}: {}", path, done.error().what);
}

void MemsUpdater::apply(Wanted wanted) {
  for (const auto& [path, nodes] : applied_)
    wanted.try_emplace(path, NodeSet{});
  Wanted applied;
  for (const auto& [path, nodes] : wanted) {
    const auto own = observe::own_nodes_of_cgroup(setup_.cgroup_root, path);
    if (!own) continue;
    const auto before = applied_.find(path);
    if (*own != nodes) {
      if (before != applied_.end() && before->second == nodes) {
        ++counters_.repaired;
        log::warning("{}: its cpuset.mems was changed to {} by another program; restoring {}", path,
                     own->empty() ? "all nodes" : format_nodes(*own), format_nodes(nodes));
      }
      write(path, nodes);
    }
    if (!nodes.empty() && has(path, nodes)) applied.emplace(path, nodes);
  }
  applied_ = std::move(applied);
}

void MemsUpdater::forget_removed(const std::function<bool(const std::string&)>& expected) {
  std::erase_if(written_paths_, [&](const std::string& path) {
    if (observe::own_nodes_of_cgroup(setup_.cgroup_root, path) || expected(path)) return false;
    setup_.remove_drop_in(path);
    return true;
  });
}

bool MemsUpdater::drifted() const {
  return std::ranges::any_of(applied_,
                             [&](const auto& one) { return !has(one.first, one.second); });
}

}  // namespace headroom::daemon
