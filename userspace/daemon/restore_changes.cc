// SPDX-License-Identifier: Apache-2.0
#include "daemon/restore_changes.h"

#include "act/original_values.h"
#include "base/log/journal.h"
#include "daemon/cpus/cpu_worker.h"
#include "daemon/state/enforce_lock.h"
#include "daemon/state/load_former.h"
#include "observe/cgroup/cgroup_source.h"

#include <memory>
#include <string_view>
#include <utility>

namespace headroom::daemon {
namespace {

template <class Found>
auto save_to(const state::StateFile<Found>& file) {
  return [&file](const Found& found) { return file.save(found); };
}

// Suspended limits first, as at the start of a daemon (Actuators::restore_former_limits()).
void restore_suspended_limits(const std::filesystem::path& state_dir) {
  const auto file = act::suspended_limits_file(state_dir);
  if (!file.exists()) return;
  act::SuspendedLimits(save_to(file))
      .restore_all(load_former(file, "limits of the killed cgroups"));
}

void restore_memory_high(const std::filesystem::path& cgroup_root,
                         const std::filesystem::path& state_dir) {
  const auto file = act::memory_high_file(state_dir);
  if (!file.exists()) return;
  act::MemoryHighOverrides(cgroup_root, save_to(file))
      .restore_all(load_former(file, "values of memory.high"));
}

void restore_memory_max(const std::filesystem::path& cgroup_root,
                        const std::filesystem::path& state_dir) {
  const auto file = act::memory_max_file(state_dir);
  if (!file.exists()) return;
  act::MemoryMaxOverrides overrides(cgroup_root, save_to(file));
  overrides.resume(load_former(file, "values of memory.max"));
  overrides.restore_all();
}

void restore_overrides(const std::filesystem::path& cgroup_root,
                       const act::CgroupOverridesFile& file, std::string_view what) {
  if (!file.exists()) return;
  act::CgroupOverrides(cgroup_root, save_to(file)).restore_former(load_former(file, what));
}

void restore_oom_scores(const std::filesystem::path& cgroup_root,
                        const std::filesystem::path& state_dir) {
  const auto file = act::oom_score_file(state_dir);
  if (!file.exists()) return;
  act::OomScores scores(cgroup_root, [] {});
  scores.resume(load_former(file, "values of oom_score_adj"));
  scores.restore_all();
  if (const auto saved = file.save(scores.found()); !saved) log::error("{}", saved.error().what);
}

// With the policy none the CPU manager removes the CPU sets that its state file is about.
void release_cpus(const std::filesystem::path& cgroup_root, const config::Config& config) {
  const auto saved = act::CpuStateFile(config.cpus.state_file).load();
  if (!saved || !*saved || (*saved)->policy != "static") return;
  CpuManagerOptions options = cpu_manager_options_of(config);
  options.cpus.mode = config::CpusConfig::Mode::kEnforce;
  options.cpus.policy = config::CpusConfig::Policy::kNone;
  CpuManager(CpuWorker::setup_of(nullptr, cgroup_root, config.pods_cgroup), std::move(options))
      .reconcile();
}

}  // namespace

void restore_limits(const std::filesystem::path& cgroup_root,
                    const std::filesystem::path& state_dir) {
  restore_suspended_limits(state_dir);
  restore_memory_high(cgroup_root, state_dir);
  restore_memory_max(cgroup_root, state_dir);
  restore_overrides(cgroup_root, act::cpu_burst_file(state_dir), "values of cpu.max.burst");
  restore_overrides(cgroup_root, act::cpu_suppress_file(state_dir), "values of cpu.idle");
  restore_overrides(cgroup_root, act::pod_swap_file(state_dir), "values of memory.swap.high");
  restore_oom_scores(cgroup_root, state_dir);
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
  restore_limits(root.mount, config.state_dir);
  release_cpus(root.mount, config);
  return {};
}

}  // namespace headroom::daemon
