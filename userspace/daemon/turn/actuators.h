// SPDX-License-Identifier: Apache-2.0
// Actuators: what carries out decisions in each mode, and restores the limits that it changed.
#pragma once

#include "act/dry_actuator.h"
#include "act/host_actuator.h"
#include "act/limits/memory_high_overrides.h"
#include "act/limits/suspended_limits.h"
#include "act/original_values.h"
#include "config/config.h"
#include "daemon/sources/node_sources.h"
#include "daemon/turn/exit_watching_actuator.h"
#include "daemon/turn/failsafe_list.h"
#include "report/reporter.h"

#include <filesystem>
#include <memory>
#include <thread>

namespace headroom::daemon {

class Actuators {
 public:
  // `sources` must outlive it.
  Actuators(const std::filesystem::path& cgroup_root, const config::Config& config,
            NodeSources& sources);

  Actuator& for_mode(Mode mode);
  FailsafeList& failsafe_list() { return failsafe_list_; }
  const FailsafeList& failsafe_list() const { return failsafe_list_; }

  // Restores, on a thread of its own, the limits that an earlier daemon left changed.
  void restore_former_limits();
  // Takes over a new configuration. In mode observe the limits that are changed now are restored.
  void reconfigure(const config::Config& config);
  report::NodeReporter::KillAssists kill_assists() const;

 private:
  const act::MemoryHighFile memory_high_file_;
  // Shared with the threads of the actuator, which may outlive it for a moment.
  std::shared_ptr<act::MemoryHighOverrides> memory_high_overrides_;
  const act::SuspendedLimitsFile suspended_limits_file_;
  std::shared_ptr<act::SuspendedLimits> suspended_limits_;
  act::HostActuator host_;
  FailsafeList failsafe_list_;
  ExitWatchingActuator exit_watching_;
  act::DryActuator dry_;
  std::jthread restore_thread_;
};

}  // namespace headroom::daemon
