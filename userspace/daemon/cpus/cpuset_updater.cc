// SPDX-License-Identifier: Apache-2.0
#include "daemon/cpus/cpuset_updater.h"

#include "base/log/journal.h"

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

// Those that are gone meanwhile are no longer any.
void CpusetUpdater::read_current(std::vector<CpuTarget>& targets) const {
  std::erase_if(targets, [&](CpuTarget& target) {
    const auto cpus = cpus_of(target.path);
    if (cpus) target.has = *cpus;
    return !cpus;
  });
}

void CpusetUpdater::count_drift(const std::vector<CpuTarget>& targets) {
  for (const CpuTarget& target : targets) {
    const auto applied = applied_.find(target.path);
    if (applied == applied_.end() || applied->second != target.wanted) continue;
    if (target.has == target.wanted) continue;
    ++counters_.repaired;
    log::warning("{}: its CPUs were changed to {} by another program; restoring {}", target.path,
                 target.has.format(), target.wanted.format());
  }
}

void CpusetUpdater::write(const std::vector<CpuWrite>& writes, std::vector<CpuTarget>& targets,
                          bool unlimited) {
  for (const CpuWrite& one : writes) {
    ++counters_.writes;
    written_paths_.insert(one.path);
    const auto done = setup_.write(one.path, unlimited ? CpuSet() : one.cpus);
    if (done) continue;
    if (!cpus_of(one.path)) continue;  // gone meanwhile
    ++counters_.failed;
    log::error("{}: {}", one.path, done.error().what);
    std::ranges::find(targets, one.path, &CpuTarget::path)->stuck = true;
  }
}

void CpusetUpdater::wait_for(const std::vector<CpuWrite>& writes, std::vector<CpuTarget>& targets) {
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
    if (target.has == target.wanted) applied_[target.path] = target.wanted;
}

void CpusetUpdater::forget_removed(const std::function<bool(const std::string&)>& expected) {
  std::erase_if(applied_, [&](const auto& applied) { return !cpus_of(applied.first); });
  std::erase_if(written_paths_, [&](const std::string& path) {
    if (cpus_of(path) || expected(path)) return false;
    setup_.remove_drop_in(path);
    return true;
  });
}

bool CpusetUpdater::drifted() const {
  return std::ranges::any_of(applied_, [&](const auto& applied) {
    const auto cpus = cpus_of(applied.first);
    return cpus && *cpus != applied.second;
  });
}

}  // namespace headroom::daemon
