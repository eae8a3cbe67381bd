// SPDX-License-Identifier: Apache-2.0
// RunningConfig: the configuration in force, completed with values of this host and with the
// operator's edits of the taints.
#pragma once

#include "act/host_actuator.h"
#include "config/config.h"
#include "config/keys.h"
#include "daemon/state/enforce_lock.h"
#include "daemon/state/taint_store.h"
#include "observe/node/capacity.h"
#include "observe/node/disk_meter.h"
#include "observe/node/filesystem_reader.h"

#include <headroom/result.h>

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>

namespace headroom::daemon {

// The options of the daemon's parts, derived from the configuration and from this host.

observe::Filesystems filesystems_of(const config::Config& config);

// Completes the policy: fastest_fill from the measurement unless it is configured, and containerfs
// from the filesystem it is on.
config::Config complete_config(config::Config config, std::int64_t measured_fill,
                               const observe::Filesystems& filesystems);

// For a daemon that observes beside one that enforces. The files of that one are about changes that
// are in force: this one would take them back at its start, and write its own values over it.
void use_state_of_an_observer(config::Config& config);

observe::DiskMeterOptions disk_meter_options(const config::Config& config);
act::ActuatorOptions actuator_options_of(const config::Config& config);

// ActiveSettings: the settings in force, which the bus's thread may read while the loop runs.

class ActiveSettings {
 public:
  void set(config::ConfigSettings settings);
  // {"settings": [{"path", "entry", "value", "origin", "next", "nextOrigin"}]}; the last two
  // if a value waits for the next start.
  std::string json() const;

 private:
  mutable std::mutex mutex_;
  config::ConfigSettings settings_;
};

class RunningConfig {
 public:
  // `lock` is set in mode enforce.
  RunningConfig(config::Config config, std::filesystem::path cgroup_root,
                std::optional<EnforceLock> lock);

  const config::Config& get() const { return config_; }
  const Policy& policy() const { return config_.policy; }
  bool enforces() const { return config_.policy.mode == Mode::kEnforce; }

  // Adopts the settings that a reload can change, and logs each one that waits for a restart. If
  // another daemon holds the lock, mode enforce becomes observe, with an error in the log.
  void adopt(config::Config fresh);
  // Releases the lock in mode observe; to be called after every part has the new configuration.
  void release_unused_lock();
  // Adopts the operator's latest edits of the taints.
  void adopt_taint_edits();
  // Scales fastestFill to the CPUs that are online now. Returns whether it changed.
  bool adopt_online_cpus(const std::filesystem::path& sys = "/sys");

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
  const observe::FillMeasurement measured_fill_;
  const observe::Filesystems filesystems_;
  TaintStore taints_;
  config::Config config_;
  ActiveSettings settings_;
};

}  // namespace headroom::daemon
