// SPDX-License-Identifier: Apache-2.0
#include "daemon/restore_changes.h"

#include "act/original_values.h"
#include "base/log/journal.h"
#include "daemon/cpus/cpu_worker.h"
#include "daemon/state/enforce_lock.h"
#include "daemon/state/load_former.h"
#include "observe/cgroup/cgroup_source.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace headroom::daemon {
namespace {

template <class Found>
auto save_to(const state::StateFile<Found>& file) {
  return [&file](const Found& found) { return file.save(found); };
}

// Calls `restore` with the original values that `file` has, if there is such a file, and adds it to
// `incomplete` unless all of them are restored then.
template <class Found, class Restore>
void restore_from(const state::StateFile<Found>& file, std::string_view what, Restore&& restore,
                  Unrestored& incomplete) {
  if (!file.exists()) return;
  const bool readable = file.read().has_value();
  std::forward<Restore>(restore)(load_former(file, what));
  const auto rest = file.read();
  if (readable && rest && rest->empty()) return;
  if (rest && !rest->empty())
    log::error("{} of the original {} could not be restored; they stay in {}", rest->size(), what,
               file.path().string());
  incomplete.push_back(file.path());
}

void restore_overrides(const std::filesystem::path& cgroup_root,
                       const act::CgroupOverridesFile& file, std::string_view what,
                       Unrestored& incomplete) {
  restore_from(
      file, what,
      [&](const act::CgroupOverrides::Found& former) {
        act::CgroupOverrides(cgroup_root, save_to(file)).restore_former(former);
      },
      incomplete);
}

void restore_memory(const std::filesystem::path& cgroup_root,
                    const std::filesystem::path& state_dir, const act::SuspendedLimits& suspended,
                    Unrestored& incomplete) {
  const auto is_lifted = [&suspended](CgroupId cgroup) {
    return suspended.is_lifted(cgroup, "memory.high");
  };
  const auto high = act::memory_high_file(state_dir);
  restore_from(
      high, "values of memory.high",
      [&](const act::MemoryHighOverrides::Found& former) {
        act::MemoryHighOverrides(cgroup_root, save_to(high), is_lifted).restore_all(former);
      },
      incomplete);
  const auto max = act::memory_max_file(state_dir);
  restore_from(
      max, "values of memory.max",
      [&](const act::MemoryMaxOverrides::Found& former) {
        act::MemoryMaxOverrides overrides(cgroup_root, save_to(max));
        overrides.resume(former);
        overrides.restore_all();
      },
      incomplete);
}

void restore_oom_scores(const std::filesystem::path& cgroup_root,
                        const std::filesystem::path& state_dir, Unrestored& incomplete) {
  const auto file = act::oom_score_file(state_dir);
  restore_from(
      file, "values of oom_score_adj",
      [&](const std::map<CgroupId, act::OriginalOomScores>& former) {
        act::OomScores scores(cgroup_root, [] {});
        scores.resume(former);
        scores.restore_all();
        if (const auto saved = file.save(scores.found()); !saved)
          log::error("{}", saved.error().what);
      },
      incomplete);
}

// With the policy none the CPU manager removes the CPU sets that its state file is about.
void release_cpus(const std::filesystem::path& cgroup_root, const config::Config& config,
                  Unrestored& incomplete) {
  const std::filesystem::path file = config.cpus.state_file;
  const auto saved = act::CpuStateFile(file).load();
  if (!saved) return incomplete.push_back(file);
  if (!*saved || (*saved)->policy != "static") return;
  CpuManagerOptions options = cpu_manager_options_of(config);
  options.cpus.mode = config::CpusConfig::Mode::kEnforce;
  options.cpus.policy = config::CpusConfig::Policy::kNone;
  CpuManager manager(CpuWorker::setup_of(nullptr, cgroup_root, config.pods_cgroup),
                     std::move(options));
  manager.reconcile();
  const auto left = act::CpuStateFile(file).load();
  const bool released = left && (!*left || (*left)->policy != "static");
  if (!released || manager.view().failed > 0) incomplete.push_back(file);
}

bool has_lifted_weight(const act::SuspendedLimits::Found& lifted) {
  return std::ranges::any_of(
      lifted, [](const auto& entry) { return entry.second.values.contains("cpu.weight"); });
}

}  // namespace

Unrestored restore_limits(const std::filesystem::path& cgroup_root,
                          const std::filesystem::path& state_dir) {
  Unrestored incomplete;
  // Suspended limits first, as at the start of a daemon (Actuators::restore_former_limits()).
  const auto file = act::suspended_limits_file(state_dir);
  act::SuspendedLimits suspended(save_to(file));
  restore_from(
      file, "limits of the killed cgroups",
      [&](const act::SuspendedLimits::Found& former) { suspended.restore_all(former); },
      incomplete);
  restore_memory(cgroup_root, state_dir, suspended, incomplete);
  restore_overrides(cgroup_root, act::cpu_burst_file(state_dir), "values of cpu.max.burst",
                    incomplete);
  // A weight that is still lifted would be taken for another program's, and the override forgotten.
  if (const auto left = file.read(); !left || !has_lifted_weight(*left))
    restore_overrides(cgroup_root, act::cpu_suppress_file(state_dir), "values of cpu.idle",
                      incomplete);
  restore_overrides(cgroup_root, act::pod_swap_file(state_dir), "values of memory.swap.high",
                    incomplete);
  restore_oom_scores(cgroup_root, state_dir, incomplete);
  return incomplete;
}

void restore_limits_of_no_daemon(const std::filesystem::path& state_dir) {
  const observe::CgroupRoot root = observe::find_cgroup_root();
  if (!root.unsupported_reason.empty()) return;
  if (const auto lock = EnforceLock::take(root.mount)) restore_limits(root.mount, state_dir);
}

Result<> restore_everything(const config::Config& config) {
  const observe::CgroupRoot root = observe::find_cgroup_root();
  if (!root.unsupported_reason.empty()) return failure(root.unsupported_reason);
  const auto lock = EnforceLock::take(root.mount);
  if (!lock) return tl::make_unexpected(lock.error());
  Unrestored incomplete = restore_limits(root.mount, config.state_dir);
  release_cpus(root.mount, config, incomplete);
  if (incomplete.empty()) return {};
  std::string files;
  for (const std::filesystem::path& file : incomplete)
    files += (files.empty() ? "" : ", ") + file.string();
  return failure("not everything was restored, see the messages above; the original values: " +
                 files);
}

}  // namespace headroom::daemon
