// SPDX-License-Identifier: Apache-2.0
#include "daemon/config/running_config.h"

#include "base/log/journal.h"
#include "config/reload.h"
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
  config_ = config::adopt_reload(std::move(fresh), config_);
  for (const config::ConfigSetting& setting : config_.settings)
    if (!setting.next.empty())
      log::warning("{}: {} takes effect at the next start", setting.path, setting.next_origin);
  settings_.set(config_.settings);
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
