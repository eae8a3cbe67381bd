// SPDX-License-Identifier: Apache-2.0
// HostActuator: does to this host what was decided.
#pragma once

#include "act/armed.h"
#include "act/errands.h"
#include "act/held_highs.h"
#include "act/lifted_limits.h"
#include "act/releaser.h"
#include "act/sentinel.h"
#include "base/pod_paths.h"

#include <headroom/ports.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace headroom::act {

using Now = Instant (*)();

// What a host is told to run and where pods' files are.
struct HostWays {
  PodPaths paths;
  std::vector<std::string> reclaim_containers;  // a command; empty: none
  std::vector<std::string> reclaim_images;
  std::uint64_t reclaim_memory = std::uint64_t{512} << 20;  // RLIMIT_DATA of those commands
};

class HostActuator final : public Actuator {
 public:
  // `limits`: what lifts the limits of the killed, and restores them.
  HostActuator(DirectoryOf directory_of, Now now, HostWays ways = {},
               std::shared_ptr<LiftedLimits> limits = std::make_shared<LiftedLimits>())
      : armory_(std::move(directory_of)),
        now_(now),
        ways_(std::move(ways)),
        errands_(std::make_unique<Errands>(now)),
        limits_(std::move(limits)),
        releaser_(std::make_unique<Releaser>(limits_)) {
    in_flight_.reserve(kInFlight);
  }

  void arm(std::span<const PodReading> pods) override { armory_.keep(pods); }
  Outcome act(const Decision& decision) override;
  void collect(std::vector<Outcome>& ended) override;
  // What holds memory.high for the ladder; without it nothing is held.
  void hold_with(std::shared_ptr<HeldHighs> highs) { highs_ = std::move(highs); }
  // Takes effect with the next act.
  void use(HostWays ways) { ways_ = std::move(ways); }

  // Descriptors of their own for the victims of these kills; those who are not armed are left out.
  std::vector<StandingVictim> stand_by(std::span<const Decision> kills) const;
  // What was done for those it killed.
  ReleaseTally released() const { return releaser_->tally(); }
  Releaser& releaser() { return *releaser_; }

  std::size_t armed() const { return armory_.size(); }
  std::size_t unarmed() const { return armory_.unarmed(); }

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
  Outcome climb(const Decision& decision, const Armed& armed);
  Outcome kill(const Decision& decision, const Armed& armed) const;
  Outcome terminate(const Decision& decision, const Armed& armed) const;

  Outcome begin(const Decision& decision, Errands::Work work);
  Outcome reclaim(const Decision& decision);
  Outcome remove_volumes(const Decision& decision);
  Outcome pre_stop(const Decision& decision, const Armed& armed);

  Armory armory_;
  Now now_;
  HostWays ways_;
  std::unique_ptr<Errands> errands_;
  std::shared_ptr<LiftedLimits> limits_;
  std::unique_ptr<Releaser> releaser_;
  std::shared_ptr<HeldHighs> highs_;
  std::vector<InFlight> in_flight_;
};

}  // namespace headroom::act
