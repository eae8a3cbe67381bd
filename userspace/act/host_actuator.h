// SPDX-License-Identifier: Apache-2.0
// HostActuator: does to this host what was decided.
#pragma once

#include "act/async_actions.h"
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

// What a host is told to run and where pods' files are.
struct ActuatorOptions {
  PodPaths paths;
  std::vector<std::string> reclaim_containers;  // a command; empty: none
  std::vector<std::string> reclaim_images;
  std::uint64_t reclaim_memory = std::uint64_t{512} << 20;  // RLIMIT_DATA of those commands
};

class HostActuator final : public Actuator {
 public:
  // `limits`: what lifts the limits of the killed, and restores them.
  HostActuator(DirectoryOf directory_of, Now now, ActuatorOptions options = {},
               std::shared_ptr<SuspendedLimits> limits = std::make_shared<SuspendedLimits>())
      : kill_fds_(std::move(directory_of)),
        now_(now),
        options_(std::move(options)),
        async_actions_(std::make_unique<AsyncActions>(now)),
        limits_(std::move(limits)),
        reaper_(std::make_unique<Reaper>(limits_)) {
    in_flight_.reserve(kInFlight);
  }

  void arm(std::span<const PodReading> pods) override { kill_fds_.keep(pods); }
  Outcome act(const Decision& decision) override;
  void collect(std::vector<Outcome>& ended) override;
  // What holds memory.high for the ladder; without it nothing is held.
  void hold_with(std::shared_ptr<MemoryHighOverrides> highs) {
    memory_high_overrides_ = std::move(highs);
  }
  // Takes effect with the next act.
  void use(ActuatorOptions options) { options_ = std::move(options); }

  // Descriptors of their own for the victims of these kills; those who are not armed are left out.
  std::vector<FailsafeVictim> open_failsafe_list(std::span<const Decision> kills) const;
  // What was done for those it killed.
  ReaperCounts released() const { return reaper_->tally(); }
  Reaper& reaper() { return *reaper_; }

  std::size_t armed() const { return kill_fds_.size(); }
  std::size_t unarmed() const { return kill_fds_.unarmed(); }

 private:
  Outcome done(const Decision& decision, Outcome::Result result, int error = 0) const;
  // One process that was signalled, until it has exited: SIGKILL goes to the one that got SIGTERM.
  struct InFlight {
    Decision decision;
    Fd process;
  };
  static constexpr std::size_t kInFlight = 64;

  Outcome signal_process(const Decision& decision);
  int process_for(const Decision& decision, Fd& opened) const;
  void follow(const Decision& decision, int process);
  Outcome perform_ladder_step(const Decision& decision, const CgroupKillFds& armed);
  Outcome kill(const Decision& decision, const CgroupKillFds& armed) const;
  Outcome terminate(const Decision& decision, const CgroupKillFds& armed) const;

  Outcome begin(const Decision& decision, AsyncActions::Work work);
  Outcome reclaim(const Decision& decision);
  Outcome remove_volumes(const Decision& decision);
  Outcome pre_stop(const Decision& decision, const CgroupKillFds& armed);

  KillFds kill_fds_;
  Now now_;
  ActuatorOptions options_;
  std::unique_ptr<AsyncActions> async_actions_;
  std::shared_ptr<SuspendedLimits> limits_;
  std::unique_ptr<Reaper> reaper_;
  std::shared_ptr<MemoryHighOverrides> memory_high_overrides_;
  std::vector<InFlight> in_flight_;
};

}  // namespace headroom::act
