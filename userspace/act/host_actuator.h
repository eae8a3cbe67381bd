// SPDX-License-Identifier: Apache-2.0
// HostActuator: carries out decisions on this host.
#pragma once

#include "act/async_actions.h"
#include "act/kill/kill_fallback.h"
#include "act/kill/kill_fds.h"
#include "act/kill/reaper.h"
#include "act/kill/sentinel.h"
#include "act/limits/memory_high_overrides.h"
#include "act/limits/suspended_limits.h"
#include "base/pod_paths.h"

#include <headroom/ports.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace headroom::act {

using Now = Instant (*)();

// The operator's commands for reclaim, and the paths of pods' files.
struct ActuatorOptions {
  PodPaths paths;
  std::vector<std::string> reclaim_containers;  // a command; empty: none
  std::vector<std::string> reclaim_images;
  std::uint64_t reclaim_memory = std::uint64_t{512} << 20;  // RLIMIT_DATA of those commands
  std::string reclaim_user;     // of those commands; empty: this process's
  std::string commands_socket;  // where commands are run; empty: in children of this process
};

class HostActuator final : public Actuator {
 public:
  // `limits` lifts the limits of killed cgroups, and restores them.
  HostActuator(DirectoryOf directory_of, Now now, ActuatorOptions options = {},
               std::shared_ptr<SuspendedLimits> limits = std::make_shared<SuspendedLimits>())
      : kill_fds_(std::move(directory_of)),
        now_(now),
        options_(std::move(options)),
        async_actions_(std::make_unique<AsyncActions>(now)),
        limits_(std::move(limits)),
        reaper_(std::make_unique<Reaper>(limits_)),
        kill_fallback_(std::make_unique<KillFallback>(now)) {
    signalled_processes_.reserve(kMaxSignalledProcesses);
  }

  void update_kill_fds(std::span<const PodReading> pods) override { kill_fds_.update(pods); }
  Outcome act(const Decision& decision) override;
  void collect(std::vector<Outcome>& ended) override;
  // Changes memory.high for the ladder; without it memory.high is not changed.
  void set_memory_high_overrides(std::shared_ptr<MemoryHighOverrides> overrides) {
    memory_high_overrides_ = std::move(overrides);
  }
  // In force from the next act().
  void use(ActuatorOptions options) { options_ = std::move(options); }

  // Duplicated descriptors for the victims of these kills; cgroups without open descriptors are
  // left out.
  std::vector<FailsafeVictim> open_failsafe_list(std::span<const Decision> kills) const;
  // What the reaper did for the killed processes.
  ReaperCounts reaper_counters() const { return reaper_->counters(); }
  Reaper& reaper() { return *reaper_; }

  std::size_t kill_fds() const { return kill_fds_.size(); }
  std::size_t missing() const { return kill_fds_.missing(); }

 private:
  Outcome done(const Decision& decision, Outcome::Result result, int error = 0) const;
  // A signalled process, until it has exited: SIGKILL goes to the same process as SIGTERM.
  struct SignalledProcess {
    Decision decision;
    Fd process;
  };
  static constexpr std::size_t kMaxSignalledProcesses = 64;

  Outcome signal_process(const Decision& decision);
  int process_for(const Decision& decision, Fd& opened) const;
  void track_process(const Decision& decision, int process);
  Outcome restore_memory_high(const Decision& decision);
  Outcome perform_ladder_step(const Decision& decision, const CgroupKillFds& kill_fds);
  Outcome kill(const Decision& decision, const CgroupKillFds& kill_fds) const;
  Outcome terminate(const Decision& decision, const CgroupKillFds& kill_fds) const;

  Outcome begin(const Decision& decision, AsyncActions::Work work);
  Outcome reclaim(const Decision& decision);
  Outcome remove_volumes(const Decision& decision);
  Outcome pre_stop(const Decision& decision, const CgroupKillFds& kill_fds);

  KillFds kill_fds_;
  Now now_;
  ActuatorOptions options_;
  std::unique_ptr<AsyncActions> async_actions_;
  std::shared_ptr<SuspendedLimits> limits_;
  std::unique_ptr<Reaper> reaper_;
  std::unique_ptr<KillFallback> kill_fallback_;
  std::shared_ptr<MemoryHighOverrides> memory_high_overrides_;
  std::vector<SignalledProcess> signalled_processes_;
};

// DryActuator: the actuator of observe mode. It does nothing; the outcome is kDryRun.

class DryActuator final : public Actuator {
 public:
  // `real` must outlive this: actions that it started before the mode changed are still collected.
  explicit DryActuator(Now now, Actuator* real = nullptr) : now_(now), real_(real) {}

  void update_kill_fds(std::span<const PodReading>) override {}
  Outcome act(const Decision& decision) override {
    return Outcome{
        .decision = decision, .result = Outcome::Result::kDryRun, .error = 0, .at = now_()};
  }
  void collect(std::vector<Outcome>& ended) override {
    if (real_)
      real_->collect(ended);
    else
      ended.clear();
  }

 private:
  Now now_;
  Actuator* real_;
};

}  // namespace headroom::act
