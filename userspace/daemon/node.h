// SPDX-License-Identifier: Apache-2.0
// Node: the daemon's parts put together, for one configuration.
#pragma once

#include "act/dry_actuator.h"
#include "act/host_actuator.h"
#include "config/config.h"
#include "daemon/cgroup_names.h"
#include "daemon/cpu_keeper.h"
#include "daemon/enforce_lock.h"
#include "daemon/engine.h"
#include "daemon/guard_keeper.h"
#include "daemon/highs_file.h"
#include "daemon/kernel_events.h"
#include "daemon/lifted_file.h"
#include "daemon/oom_keeper.h"
#include "daemon/recorder.h"
#include "daemon/settings_in_force.h"
#include "daemon/shadow_keeper.h"
#include "daemon/slice_keeper.h"
#include "daemon/sources.h"
#include "daemon/standby.h"
#include "daemon/status_file.h"
#include "daemon/status_keeper.h"
#include "daemon/taint_keeper.h"
#include "daemon/timers_file.h"
#include "daemon/told_names.h"
#include "daemon/victims_file.h"
#include "daemon/watching_actuator.h"
#include "observe/best_source.h"
#include "observe/cgroup_root.h"
#include "observe/filesystems.h"
#include "observe/host_observer.h"
#include "observe/kernel_waits.h"
#include "observe/lifecycle_watch.h"
#include "observe/manifest.h"
#include "report/bus_thread.h"
#include "report/http.h"
#include "report/reporter.h"

#include <headroom/result.h>

#include <memory>
#include <optional>
#include <thread>

namespace headroom::daemon {

class Node {
 public:
  static Result<std::unique_ptr<Node>> start(config::Config config, observe::CgroupRoot root,
                                             observe::Manifests manifests);

  // One turn of the engine; returns when the next is due.
  Instant turn(report::Wake wake);

  // Readable when the kernel has something to tell; -1 where it does not.
  // Readable when the guard has woken us; -1: there is none.
  int guard_descriptor() const { return guard_ ? guard_->descriptor() : -1; }
  void heed_guard() { guard_->drain(); }
  int events_descriptor() const { return lifecycle_ ? lifecycle_->descriptor() : -1; }
  // Takes what it tells; the next turn is then due no later than this.
  std::optional<Instant> take_events();

  // A new configuration: what can change now does, what needs a restart is said.
  void adopt(config::Config config);
  void describe(observe::Manifests manifests);

  const config::Config& config() const { return config_; }
  const Amounts& capacity() const { return status_.capacity(); }
  std::filesystem::path pods_cgroup() const { return root_.mount / config_.pods_cgroup; }

  // The loop's, for health answers.
  report::Heartbeat& heartbeat() { return *heartbeat_; }

  // Readable when an operator has edited the taints: then heed_edits(), and take a turn.
  int edits_fd() const { return taints_.edited_fd(); }
  void heed_edits();

 private:
  Node(config::Config config, const observe::CgroupRoot& root, Sources sources,
       observe::Manifests manifests);
  report::ReporterSetup reporter_setup();
  void open_windows();
  Result<> keep_slices();
  void restore_limits();
  void resume();
  void resume_timers();
  Actuator& actuator();
  void note_source();
  void check_itself(Instant next_turn);
  void say_trouble();
  config::Config tainted(config::Config config);
  StatusKeeper::Setup status_setup();
  report::DbusSetup bus_setup();
  void adopt_policy();
  void keep_lock(config::Config& fresh);
  void keep_cpus();
  void save_state();
  report::Programs programs() const;
  bool is_dying(CgroupId id) const;
  void keep_oom_scores();
  void mirror_oom_scores(const Snapshot& snapshot, std::span<const Decision> first);
  void tell_oom_kill(const hr_event& event);
  void forget_exits();

  const observe::CgroupRoot root_;
  std::optional<EnforceLock> lock_;   // in mode enforce; the last to be released
  const std::int64_t measured_fill_;  // bytes per second
  const observe::Filesystems filesystems_;
  TaintKeeper taints_;
  config::Config config_;
  observe::BestSource* source_;  // these two are the observer's
  const observe::KernelWaits* waits_;
  observe::HostObserver observer_;
  InventoryNames names_;
  const std::shared_ptr<report::Heartbeat> heartbeat_ =
      std::make_shared<report::Heartbeat>(&observe::now);
  std::shared_ptr<report::Shown> shown_;
  std::shared_ptr<ToldNames> told_names_ = std::make_shared<ToldNames>();
  std::shared_ptr<report::CpuBoard> cpu_board_;
  std::shared_ptr<RepackDesk> repack_desk_;
  std::unique_ptr<SliceKeeper> slices_;  // null: off since the start
  SettingsInForce settings_;
  StatusKeeper status_;
  std::unique_ptr<report::BusThread> bus_;
  report::NodeReporter reporter_;
  ShadowKeeper shadow_;
  std::unique_ptr<report::Http> http_;
  HighsFile highs_file_;
  std::shared_ptr<act::HeldHighs> highs_;  // outlives who acts through it
  LiftedFile lifted_file_;
  std::shared_ptr<act::LiftedLimits> lifted_limits_;  // the same
  act::HostActuator host_actuator_;
  act::DryActuator dry_actuator_;
  std::unique_ptr<OomKeeper> oom_keeper_;  // null: never on
  Standby standby_;
  Recorder recorder_;  // asked for on the bus's thread
  KernelEvents events_;
  std::unique_ptr<observe::LifecycleWatch> lifecycle_;  // null: nothing is told
  std::unique_ptr<observe::MemoryGuard> guard_;         // null: nothing looks between our looks
  GuardKeeper guard_keeper_;
  WatchingActuator watching_actuator_;
  VictimsFile victims_file_;
  TimersFile timers_file_;
  bool state_unsaved_ = false;
  std::unique_ptr<StatusFile> status_file_;
  std::vector<Pod> manifests_;       // as last described
  std::unique_ptr<CpuKeeper> cpus_;  // null: never on
  Instant checked_at_;               // the source against the files
  std::string trouble_;              // of the observer, as last said
  std::jthread restoring_;           // memory.high
  Engine engine_;
};

}  // namespace headroom::daemon
