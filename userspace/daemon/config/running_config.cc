// SPDX-License-Identifier: Apache-2.0
#include "daemon/config/running_config.h"

#include "base/log/journal.h"
#include "daemon/config/derived_config.h"
#include "observe/node/memory_fill_rate.h"

#include <string>
#include <utility>

namespace headroom::daemon {

RunningConfig::RunningConfig(config::Config config, std::filesystem::path cgroup_root,
                             std::optional<EnforceLock> lock)
    : cgroup_root_(std::move(cgroup_root)),
      lock_(std::move(lock)),
      measured_fill_(observe::measure_fastest_fill()),
      filesystems_(filesystems_of(config)),
      taints_(config.state_dir),
      config_(
          with_current_taints(complete_config(std::move(config), measured_fill_, filesystems_))) {
  settings_.set(config_.settings);
}

config::Config RunningConfig::with_current_taints(config::Config config) {
  if (auto result = taints_.configure(config.taints); !result)
    log::error("{}: edited taints will be lost when this daemon ends", result.error().what);
  config.policy.taints = taints_.shared_taints();
  return config;
}

// Two daemons in mode enforce would each kill a pod for the same shortage. Without the lock the
// mode stays observe; the rest of the configuration is adopted.
void RunningConfig::take_lock(config::Config& fresh) {
  if (fresh.policy.mode != Mode::kEnforce || lock_) return;
  auto taken = EnforceLock::take(cgroup_root_);
  if (taken) {
    lock_.emplace(std::move(*taken));
    return;
  }
  log::error("{}; headroom.mode stays observe", taken.error().what);
  fresh.policy.mode = Mode::kObserve;
  for (config::ConfigSetting& setting : fresh.settings)
    if (setting.path == "headroom.mode") {
      setting.value = R"("observe")";
      setting.origin = "found";
    }
}

void RunningConfig::adopt(config::Config fresh) {
  take_lock(fresh);
  fresh = with_current_taints(complete_config(std::move(fresh), measured_fill_, filesystems_));
  config_.settings = config::keep_restart_settings(std::move(fresh.settings), config_.settings);
  for (const config::ConfigSetting& setting : config_.settings)
    if (!setting.next.empty())
      log::warning("{}: {} takes effect at the next start", setting.path, setting.next_origin);
  settings_.set(config_.settings);
  config_.reclaim = std::move(fresh.reclaim);
  config_.cpus = std::move(fresh.cpus);
  config_.policy = std::move(fresh.policy);
  config_.self_check_period = fresh.self_check_period;
  config_.cpu_budget = fresh.cpu_budget;
  config_.pod_manifests = std::move(fresh.pod_manifests);
  config_.kubernetes = std::move(fresh.kubernetes);
  config_.kubelet_present = fresh.kubelet_present;
  config_.taints = std::move(fresh.taints);
  // The sources depend on where the pods' cgroup is: both change at the next start.
  fresh.reserved.driver = config_.reserved.driver;
  fresh.reserved.kubepods = config_.reserved.kubepods;
  config_.reserved = std::move(fresh.reserved);
  config_.slices = fresh.slices;
  config_.max_pods = fresh.max_pods;
  config_.pods_per_core = fresh.pods_per_core;
  config_.node_name = std::move(fresh.node_name);
  config_.node_labels = std::move(fresh.node_labels);
  config_.log_level = fresh.log_level;
  config_.mirror_oom_scores = fresh.mirror_oom_scores;
}

void RunningConfig::release_unused_lock() {
  if (!enforces()) lock_.reset();
}

void RunningConfig::adopt_taint_edits() {
  taints_.clear_edited();
  config_.policy.taints = taints_.shared_taints();
  std::string list;
  for (const auto& taint : config_.policy.taints)
    list.append(list.empty() ? "" : ", ").append(to_string(*taint));
  log::info("the node's taints are now: {}", list.empty() ? "none" : list);
}

}  // namespace headroom::daemon
