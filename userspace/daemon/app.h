// SPDX-License-Identifier: Apache-2.0
// App: the daemon's parts, built for one configuration, and the turn that uses them.
#pragma once

#include "daemon/background_workers.h"
#include "daemon/config/running_config.h"
#include "daemon/forecast/memory_forecaster.h"
#include "daemon/servers.h"
#include "daemon/sources/node_sources.h"
#include "daemon/state/eviction_state.h"
#include "daemon/status/node_status_tracker.h"
#include "daemon/turn/actuators.h"
#include "daemon/turn/engine.h"
#include "daemon/turn/system_use_reader.h"
#include "daemon/turn/turn_recorder.h"
#include "manifest/manifest_reader.h"
#include "observe/cgroup/cgroup_source.h"
#include "report/metrics/metrics.h"
#include "report/reporter.h"

#include <headroom/policy.h>
#include <headroom/result.h>
#include <headroom/shadow.h>
#include <headroom/snapshot.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

namespace headroom::daemon {

// KubeletShadow: what a kubelet with the same policy would have done, computed at every turn.

class KubeletShadow {
 public:
  explicit KubeletShadow(Policy policy) : policy_(std::move(policy)) {}

  // Resets its timers, like a kubelet that restarts with another configuration.
  void reconfigure(const Policy& policy) {
    policy_ = policy;
    state_ = {};
  }
  // Valid until the next call.
  const ShadowResult& update(const Snapshot& snapshot, const Verdict& verdict) {
    shadow(policy_, snapshot, verdict, state_, result_);
    return result_;
  }

 private:
  Policy policy_;
  ShadowState state_;
  ShadowResult result_;
};

class App {
 public:
  // Errors: another daemon is in mode enforce, cgroups cannot be read, or systemd cannot be reached
  // where slices are to be enforced.
  static Result<std::unique_ptr<App>> start(config::Config config, observe::CgroupRoot root,
                                            observe::Manifests manifests);

  // Runs one turn; returns when the next one is due.
  Instant turn(report::WakeSource wake);
  // Whether the turn that is due at `now` can be put off, because the guard saw that memory cannot
  // have reached its threshold yet: then until when; absent: the turn must be run.
  std::optional<Instant> put_off_turn(Instant now);

  // Applies the configuration of a reload. Settings that need a restart are logged.
  void reconfigure(config::Config config);
  void set_declared_pods(observe::Manifests manifests);
  // Applies the operator's edits of taints, after taints_edited_fd() was readable.
  void apply_taint_edits();
  // Reads the kernel's events. A turn is due no later than the returned time.
  std::optional<Instant> read_events();
  void drain_guard() { sources_.drain_guard(); }

  // Descriptors for the loop to poll; -1: not available on this kernel.
  int guard_descriptor() const { return sources_.guard_descriptor(); }
  int events_descriptor() const { return sources_.events_descriptor(); }
  int taints_edited_fd() const { return config_.taints().edited_fd(); }

  const config::Config& config() const { return config_.get(); }
  const Amounts& capacity() const { return node_status_.capacity(); }
  std::filesystem::path pods_cgroup() const { return root_.mount / config().pods_cgroup; }
  report::Heartbeat& heartbeat() { return servers_.heartbeat(); }
  report::ReloadStatus& reload_status() { return *reload_status_; }

 private:
  App(config::Config config, const observe::CgroupRoot& root, std::optional<EnforceLock> lock,
      ObserveSources sources, observe::Manifests manifests);
  void start_servers();
  report::ReporterSetup reporter_setup();
  NodeStatusTracker::Setup status_setup();
  report::DbusSetup bus_setup();
  KernelEventHandler::Setup event_setup();

  Instant set_guard(Instant next);
  void pass_counters_to_reporter();
  void self_check_if_idle(Instant next_turn);
  void follow_online_cpus();
  void propagate_policy();
  bool is_victim(CgroupId id) const;
  void report_oom_kill(const hr_event& event);

  // Destroyed from the last to the first: the servers' threads, which call into the other parts,
  // end before those parts do.
  const observe::CgroupRoot root_;
  RunningConfig config_;
  NodeSources sources_;
  const std::shared_ptr<report::PublishedViews> views_ = std::make_shared<report::PublishedViews>();
  const std::shared_ptr<report::AdmissionCounts> admissions_ =
      std::make_shared<report::AdmissionCounts>();
  const std::shared_ptr<report::ReloadStatus> reload_status_ =
      std::make_shared<report::ReloadStatus>();
  BackgroundWorkers workers_;
  NodeStatusTracker node_status_;
  KubeletShadow shadow_;
  report::NodeReporter reporter_;
  SystemUseReader system_use_;
  TurnRecorder recorder_;
  Actuators actuators_;
  EvictionState eviction_state_;
  Engine engine_;
  // When the next turn must be run although the guard watches memory; absent: it does not.
  std::optional<Instant> guarded_until_;
  std::int64_t cpus_ = 0;                          // online at the last turn
  std::optional<ForecastWorker> forecast_worker_;  // absent: before the servers start
  Servers servers_;
};

}  // namespace headroom::daemon
