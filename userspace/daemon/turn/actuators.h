// SPDX-License-Identifier: Apache-2.0
// Actuators: what carries out decisions in each mode, and restores the limits that it changed.
#pragma once

#include "act/host_actuator.h"
#include "act/kill/sentinel.h"
#include "act/limits/memory_high_overrides.h"
#include "act/limits/suspended_limits.h"
#include "act/original_values.h"
#include "config/config.h"
#include "daemon/sources/node_sources.h"
#include "observe/bpf/lifecycle_watch.h"
#include "observe/node/node_source.h"
#include "report/reporter.h"

#include <headroom/ports.h>

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

namespace headroom::daemon {

// FailsafeList: keeps the list of pods that the sentinel kills if the loop hangs.

class FailsafeList {
 public:
  // The ranking changes slowly, so it is not computed at each sweep.
  static constexpr Duration kPeriod = std::chrono::seconds(5);
  static constexpr std::size_t kMax = 16;

  // `actuator` must outlive it.
  FailsafeList(act::HostActuator& actuator, const std::filesystem::path& cgroup_root);

  void reconfigure(const Policy& policy);
  // After every turn. Returns the pods in the order in which they would be evicted for memory, if
  // it ranked them again in this turn; else nothing. Valid until the next call.
  std::span<const Decision> update(const Snapshot& snapshot, const Verdict& verdict);

  // The pod that a hard threshold of memory would evict now; null: none, or not yet ranked.
  const std::shared_ptr<const Pod>& first() const { return first_; }

  // Reports that the loop runs, and that its next turn is due at `due`.
  void beat(Instant due) { sentinel_.beat(due); }
  void collect(std::vector<Outcome>& ended) { sentinel_.collect(ended); }
  std::uint64_t hangs() const { return sentinel_.hangs(); }
  std::uint64_t kills() const { return sentinel_.kills(); }

 private:
  act::HostActuator& actuator_;
  Policy policy_;
  std::optional<Instant> updated_at_;
  std::vector<Decision> list_;
  std::shared_ptr<const Pod> first_;
  observe::NodeSource memory_;  // read by the sentinel's thread only
  act::Sentinel sentinel_;
};

// ExitWatchingActuator: registers killed cgroups so that the exits of their processes are reported,
// and passes every act to another actuator.

class ExitWatchingActuator final : public Actuator {
 public:
  // `watch` may be null: then exits are not reported.
  ExitWatchingActuator(Actuator& actuator, observe::LifecycleWatch* watch,
                       FailsafeList& failsafe_list)
      : actuator_(&actuator), watch_(watch), failsafe_list_(&failsafe_list) {}

  void update_kill_fds(std::span<const PodReading> pods) override {
    actuator_->update_kill_fds(pods);
  }
  // Registers the cgroup before the kill, so that the first exit is not missed; the map of these
  // cgroups has a fixed size.
  Outcome act(const Decision& decision) override {
    // The exit of a single process is noticed by its own pidfd.
    const bool watched = watch_ && decision.part.unit != EvictionUnit::kProcess &&
                         (decision.act == Act::kKill || decision.act == Act::kTerminate);
    const CgroupId cgroup = decision.part.whole() ? decision.cgroup : decision.part.cgroup;
    if (watched) watch_->watch_exits(cgroup);
    Outcome outcome = actuator_->act(decision);
    if (watched && outcome.result != Outcome::Result::kDone) watch_->forget_exits(cgroup);
    return outcome;
  }
  // Also collects the outcomes of the sentinel's kills.
  void collect(std::vector<Outcome>& ended) override {
    actuator_->collect(ended);
    failsafe_list_->collect(ended);
  }

 private:
  Actuator* actuator_;
  observe::LifecycleWatch* watch_;
  FailsafeList* failsafe_list_;
};

// SerialTasks: runs tasks one after the other on a thread that starts with the first one. submit()
// never waits for a task, however long one takes.

class SerialTasks {
 public:
  using Task = std::function<void()>;

  SerialTasks() = default;
  // Runs the submitted tasks, and waits for them.
  ~SerialTasks();
  SerialTasks(const SerialTasks&) = delete;
  SerialTasks& operator=(const SerialTasks&) = delete;

  void submit(Task task);

 private:
  void run();

  std::mutex mutex_;  // protects tasks_ and stop_
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  bool stop_ = false;
  std::thread thread_;
};

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
  // Adopts a new configuration. In mode observe the limits that are changed now are restored.
  void reconfigure(const config::Config& config);
  report::NodeReporter::KillAssists kill_assists() const;

 private:
  const act::MemoryHighFile memory_high_file_;
  // Shared with the actuator's threads, which may run a moment longer than it.
  const act::SuspendedLimitsFile suspended_limits_file_;
  std::shared_ptr<act::SuspendedLimits> suspended_limits_;
  std::shared_ptr<act::MemoryHighOverrides> memory_high_overrides_;
  act::HostActuator host_;
  FailsafeList failsafe_list_;
  ExitWatchingActuator exit_watching_;
  act::DryActuator dry_;
  SerialTasks restores_;  // destroyed first: its tasks use the members above
};

}  // namespace headroom::daemon
