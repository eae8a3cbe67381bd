// SPDX-License-Identifier: Apache-2.0
// Engine: one turn of observe → judge → act → report. It owns the history; it opens no file and
// knows no library, and what time it is it is told.
#pragma once

#include "daemon/sources/sweep_schedule.h"
#include "daemon/turn/turn_meter.h"

#include <headroom/ports.h>

#include <algorithm>
#include <functional>
#include <vector>

namespace headroom::daemon {

class Engine {
 public:
  // `on_cost` is told what the turn took before the reporter is told what happened in it.
  using OnTurnCost = std::function<void(const report::TurnCost&)>;
  Engine(Policy policy, Observer& observer, Actuator& actuator, Reporter& reporter, TurnMeter meter,
         SweepSchedule sweep_scheduler, OnTurnCost on_turn_cost);

  // Returns when the next turn is due.
  Instant turn(Instant now, report::WakeSource wake = report::WakeSource::kTimer);

  // Victims of a former life, whose grace goes on.
  void resume(std::vector<Victim> victims);
  // Pods whose tolerationSeconds run on.
  void resume(std::vector<TaintTimer> timers);
  // Takes effect at the next turn; what still applies of the history stays.
  void reconfigure(Policy policy);
  // Something happened among the cgroups: they are read again no later than this.
  void request_sweep_by(Instant at) { sweep_schedule_.advance_to(at); }
  // What the loop may take of one CPU.
  void set_cpu_budget(double budget) { sweep_schedule_.set_cpu_budget(budget); }
  // The actuator in force (dry or real).
  void use(Actuator& actuator) { actuator_ = &actuator; }

  const Policy& policy() const { return policy_; }
  const History& history() const { return history_; }
  const Verdict& verdict() const { return verdict_; }
  // When the next turn is due, if the guard watches memory meanwhile; after turn().
  Instant next_guarded() const {
    return std::min(verdict_.next_check_guarded, sweep_schedule_.due());
  }
  const std::vector<Outcome>& outcomes() const { return outcomes_; }

 private:
  Snapshot take_snapshot(SnapshotScope depth);
  void act(const Snapshot& snapshot);

  Policy policy_;
  Observer* observer_;
  Actuator* actuator_;
  Reporter* reporter_;
  TurnMeter meter_;
  OnTurnCost on_turn_cost_;
  History history_;
  Verdict verdict_;
  std::vector<Outcome> outcomes_;
  std::vector<Outcome> finished_;  // of what former turns started
  SweepSchedule sweep_schedule_;
};

}  // namespace headroom::daemon
