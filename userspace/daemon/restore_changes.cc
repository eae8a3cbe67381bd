// SPDX-License-Identifier: Apache-2.0
#include "daemon/restore_changes.h"

#include "act/cpus/cpuset_units.h"
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

// Whether a checkpoint of one of the managers is of the policy that assigns. Empty: there is no
// such file.
template <class StateFile>
bool assigns(const StateFile& file, std::string_view policy, Unrestored& incomplete) {
  const auto saved = file.load();
  if (!saved) incomplete.push_back(file.path());
  return saved && *saved && (*saved)->policy == policy;
}

// With the policies none and None the managers remove the sets of CPUs and of NUMA nodes that
// their state files are about. In another mode than enforce a file that is configured may be a
// kubelet's, whose assignments are only shown: then those of the default names are used.
CpuManagerOptions releasing_options(const config::Config& config) {
  using config::CpusConfig;
  CpuManagerOptions options{.cpus = config.cpus};
  if (config.cpus.mode != CpusConfig::Mode::kEnforce) {
    options.cpus.state_file = CpusConfig().state_file;
    options.cpus.memory_state_file = CpusConfig().memory_state_file;
  }
  options.cpus.mode = CpusConfig::Mode::kEnforce;
  options.cpus.policy = CpusConfig::Policy::kNone;
  options.cpus.memory_policy = CpusConfig::MemoryManagerPolicy::kNone;
  return options;
}

void release_cpus_and_memory(const std::filesystem::path& cgroup_root, const config::Config& config,
                             Unrestored& incomplete) {
  using config::CpusConfig;
  CpuManagerOptions options = releasing_options(config);
  const act::CpuStateFile cpus(options.cpus.state_file);
  const act::MemoryStateFile memory(options.cpus.memory_state_file);
  const auto cpus_left = [&] {
    return assigns(cpus, name(CpusConfig::Policy::kStatic), incomplete);
  };
  const auto memory_left = [&] {
    return assigns(memory, name(CpusConfig::MemoryManagerPolicy::kStatic), incomplete);
  };
  const auto units = act::cpuset_units_file(config.state_dir);
  const bool has_cpus = cpus_left(), has_memory = memory_left();
  if (!has_cpus && !has_memory && !units.exists()) return;
  CpuManager manager(
      CpuWorker::setup_of(nullptr, cgroup_root, config.pods_cgroup, config.state_dir),
      std::move(options));
  manager.reconcile();
  if (units.exists()) incomplete.push_back(units.path());
  if (cpus_left()) incomplete.push_back(cpus.path());
  if (memory_left()) incomplete.push_back(memory.path());
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
  release_cpus_and_memory(root.mount, config, incomplete);
  if (incomplete.empty()) return {};
  std::string files;
  for (const std::filesystem::path& file : incomplete)
    files += (files.empty() ? "" : ", ") + file.string();
  return failure("not everything was restored, see the messages above; the original values: " +
                 files);
}

}  // namespace headroom::daemon
