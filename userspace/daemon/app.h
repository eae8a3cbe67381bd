// SPDX-License-Identifier: Apache-2.0
// Node: the daemon's parts put together, for one configuration.
#pragma once

#include "act/dry_actuator.h"
#include "act/host_actuator.h"
#include "config/config.h"
#include "daemon/active_settings.h"
#include "daemon/cpus/cpu_worker.h"
#include "daemon/slices/slice_worker.h"
#include "daemon/sources/cgroup_sources.h"
#include "daemon/sources/guard_control.h"
#include "daemon/sources/inventory_cgroup_names.h"
#include "daemon/sources/kernel_events.h"
#include "daemon/sources/kubelet_container_names.h"
#include "daemon/state/enforce_lock.h"
#include "daemon/state/memory_high_file.h"
#include "daemon/state/oom_score_worker.h"
#include "daemon/state/suspended_limits_file.h"
#include "daemon/state/taint_store.h"
#include "daemon/state/taint_timers_file.h"
#include "daemon/state/victims_file.h"
#include "daemon/status/node_status_reporter.h"
#include "daemon/status/status_file.h"
#include "daemon/turn/engine.h"
#include "daemon/turn/exit_watching_actuator.h"
#include "daemon/turn/failsafe_list.h"
#include "daemon/turn/shadow_reporter.h"
#include "daemon/turn/turn_recorder.h"
#include "manifest/manifest_reader.h"
#include "observe/best_source.h"
#include "observe/bpf/kernel_waits.h"
#include "observe/bpf/lifecycle_watch.h"
#include "observe/cgroup/cgroup_root.h"
#include "observe/host_observer.h"
#include "observe/node/filesystems.h"
#include "report/dbus/dbus_thread.h"
#include "report/http/server/http_server.h"
#include "report/reporter.h"

#include <headroom/result.h>

#include <memory>
#include <optional>
#include <thread>

namespace headroom::daemon {

class App {
 public:
  static Result<std::unique_ptr<App>> start(config::Config config, observe::CgroupRoot root,
                                            observe::Manifests manifests);

  // One turn of the engine; returns when the next is due.
  Instant turn(report::WakeSource wake);

  // Readable when the kernel has something to tell; -1 where it does not.
  // Readable when the guard has woken us; -1: there is none.
  int guard_descriptor() const { return guard_ ? guard_->descriptor() : -1; }
  void drain_guard() { guard_->drain(); }
  int events_descriptor() const { return lifecycle_ ? lifecycle_->descriptor() : -1; }
  // Takes what it tells; the next turn is then due no later than this.
  std::optional<Instant> read_events();

  // A new configuration: what can change now does, what needs a restart is said.
  void reconfigure(config::Config config);
  void set_declared_pods(observe::Manifests manifests);

  const config::Config& config() const { return config_; }
  const Amounts& capacity() const { return node_status_.capacity(); }
  std::filesystem::path pods_cgroup() const { return root_.mount / config_.pods_cgroup; }

  // The loop's, for health answers.
  report::Heartbeat& heartbeat() { return *heartbeat_; }

  // Readable when an operator has edited the taints: then heed_edits(), and take a turn.
  int taints_edited_fd() const { return taints_.edited_fd(); }
  void apply_taint_edits();

 private:
  App(config::Config config, const observe::CgroupRoot& root, ObserveSources sources,
      observe::Manifests manifests);
  report::ReporterSetup reporter_setup();
  void start_servers();
  Result<> start_slice_worker();
  void restore_limits();
  void resume();
  void resume_timers();
  Actuator& actuator();
  void publish_source();
  void run_self_check(Instant next_turn);
  void log_new_error();
  config::Config with_current_taints(config::Config config);
  NodeStatusReporter::Setup status_setup();
  report::DbusSetup bus_setup();
  void propagate_policy();
  void take_or_release_lock(config::Config& fresh);
  void update_cpus();
  void save_state();
  report::Programs programs() const;
  bool is_dying(CgroupId id) const;
  void update_oom_score_worker();
  void mirror_oom_scores(const Snapshot& snapshot, std::span<const Decision> first);
  void report_oom_kill(const hr_event& event);
  void forget_exits();

  const observe::CgroupRoot root_;
  std::optional<EnforceLock> lock_;   // in mode enforce; the last to be released
  const std::int64_t measured_fill_;  // bytes per second
  const observe::Filesystems filesystems_;
  TaintStore taints_;
  config::Config config_;
  observe::BestSource* source_;  // these two are the observer's
  const observe::KernelWaits* waits_;
  observe::HostObserver observer_;
  InventoryCgroupNames names_;
  const std::shared_ptr<report::Heartbeat> heartbeat_ =
      std::make_shared<report::Heartbeat>(&observe::now);
  std::shared_ptr<report::PublishedViews> views_;
  std::shared_ptr<KubeletContainerNames> kubelet_container_names_ =
      std::make_shared<KubeletContainerNames>();
  std::shared_ptr<report::PublishedCpusView> cpus_view_;
  std::shared_ptr<RepackQueue> repack_queue_;
  std::unique_ptr<SliceWorker> slices_;  // null: off since the start
  ActiveSettings active_settings_;
  NodeStatusReporter node_status_;
  std::unique_ptr<report::DbusThread> bus_;
  report::NodeReporter reporter_;
  ShadowReporter shadow_reporter_;
  std::unique_ptr<report::HttpServer> http_;
  MemoryHighFile memory_high_file_;
  std::shared_ptr<act::MemoryHighOverrides> memory_high_overrides_;  // outlives who acts through it
  SuspendedLimitsFile lifted_limits_file_;
  std::shared_ptr<act::SuspendedLimits> lifted_limits_;  // the same
  act::HostActuator host_actuator_;
  act::DryActuator dry_actuator_;
  std::unique_ptr<OomScoreWorker> oom_score_worker_;  // null: never on
  FailsafeList failsafe_list_;
  TurnRecorder recorder_;  // asked for on the bus's thread
  KernelEventHandler events_;
  std::unique_ptr<observe::LifecycleWatch> lifecycle_;  // null: nothing is told
  std::unique_ptr<observe::MemoryGuard> guard_;         // null: nothing looks between our looks
  GuardControl guard_control_;
  ExitWatchingActuator exit_tracking_actuator_;
  VictimsFile victims_file_;
  TaintTimersFile taint_timer_file_;
  bool state_unsaved_ = false;
  std::unique_ptr<NodeStatusWriter> node_status_writer_;
  std::vector<Pod> manifests_;       // as last described
  std::unique_ptr<CpuWorker> cpus_;  // null: never on
  Instant self_checked_at_;          // the source against the files
  std::string logged_error_;         // of the observer, as last said
  std::jthread restore_thread_;      // memory.high
  Engine engine_;
};

}  // namespace headroom::daemon
