// SPDX-License-Identifier: Apache-2.0
// RunningConfig: the configuration in force, completed with what was found on this host and with
// the taints as edited since.
#pragma once

#include "config/config.h"
#include "daemon/config/active_settings.h"
#include "daemon/state/enforce_lock.h"
#include "daemon/state/taint_store.h"
#include "observe/node/filesystems.h"

#include <headroom/result.h>

#include <cstdint>
#include <filesystem>
#include <optional>

namespace headroom::daemon {

class RunningConfig {
 public:
  // `lock` is set in mode enforce.
  RunningConfig(config::Config config, std::filesystem::path cgroup_root,
                std::optional<EnforceLock> lock);

  const config::Config& get() const { return config_; }
  const Policy& policy() const { return config_.policy; }
  bool enforces() const { return config_.policy.mode == Mode::kEnforce; }

  // Takes over what a reload can change, and logs each setting that waits for a restart. If another
  // daemon holds the lock, mode enforce becomes observe, with an error in the log.
  void adopt(config::Config fresh);
  // Releases the lock in mode observe: after every part has taken over the configuration.
  void release_unused_lock();
  // The taints as last edited, from now on.
  void adopt_taint_edits();

  TaintStore& taints() { return taints_; }
  const TaintStore& taints() const { return taints_; }
  const observe::Filesystems& filesystems() const { return filesystems_; }
  // On any thread.
  const ActiveSettings& settings() const { return settings_; }

 private:
  config::Config with_current_taints(config::Config config);
  void take_lock(config::Config& fresh);

  const std::filesystem::path cgroup_root_;
  std::optional<EnforceLock> lock_;
  const std::int64_t measured_fill_;  // bytes per second
  const observe::Filesystems filesystems_;
  TaintStore taints_;
  config::Config config_;
  ActiveSettings settings_;
};

}  // namespace headroom::daemon
