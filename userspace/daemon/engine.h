// SPDX-License-Identifier: Apache-2.0
// Engine: one turn of observe → judge → act → report. It owns the history; it reads no clock, opens
// no file and knows no library.
#pragma once

#include <cstdint>
#include <vector>

#include <headroom/ports.h>

namespace headroom::daemon {

class Engine {
 public:
  Engine(Policy policy, Observer& observer, Actuator& actuator, Reporter& reporter);

  // Returns when the next turn is due.
  Instant turn(Instant now);

  // Victims of a former life, whose grace goes on.
  void resume(std::vector<Victim> victims);
  // Takes effect at the next turn; what still applies of the history stays.
  void adopt(Policy policy);
  // The actuator in force (dry or real).
  void use(Actuator& actuator) { actuator_ = &actuator; }

  const Policy& policy() const { return policy_; }
  const History& history() const { return history_; }
  const Verdict& verdict() const { return verdict_; }
  const std::vector<Outcome>& outcomes() const { return outcomes_; }

 private:
  Snapshot look(Instant now);
  void act();

  Policy policy_;
  Observer* observer_;
  Actuator* actuator_;
  Reporter* reporter_;
  History history_;
  Verdict verdict_;
  std::vector<Outcome> outcomes_;
  Instant next_sweep_;
};

}  // namespace headroom::daemon
