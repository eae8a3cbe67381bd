// SPDX-License-Identifier: Apache-2.0
// Engine: observes, judges and acts. It owns the history; it opens no file, knows no library, and
// gets the time as an argument.
//
// App::turn() calls the steps of a turn in this order: start(), collect_outcomes(),
// observe_and_judge(), act(), plan(), commit(). What they saw and did is readable until the next
// start().
#pragma once

#include "daemon/sources/sweep_schedule.h"
#include "daemon/turn/turn_meter.h"

#include <headroom/ports.h>

#include <span>
#include <vector>

namespace headroom::daemon {

class Engine {
 public:
  Engine(Policy policy, Observer& observer, Actuator& actuator, TurnMeter meter,
         SweepSchedule sweep_schedule);

  void start(report::WakeSource wake);
  // Adds the ends of actions that earlier turns started to the history.
  void collect_outcomes();
  // Takes a snapshot and judges it; takes a second one, of every cgroup, if the first asks for a
  // decision.
  void observe_and_judge(Instant now);
  // Opens the kill descriptors of the pods seen and carries out the decisions. Allocates nothing.
  void act();
  // Returns when the next turn is due.
  Instant plan();
  // The history after this turn is the one that the next turn is judged with.
  void commit();

  const Snapshot& snapshot() const { return snapshot_; }
  const Verdict& verdict() const { return verdict_; }
  // Of earlier turns' actions first, then of this turn's. Those of a turn that an exception ended
  // before outcomes_reported() are still among them.
  std::span<const Outcome> outcomes() const { return outcomes_; }
  void outcomes_reported() { reported_ = true; }
  const report::TurnCost& cost() const { return meter_.cost(); }
  // When the next turn is due if the guard watches memory until then; after plan().
  Instant next_guarded() const;
  const Policy& policy() const { return policy_; }
  const History& history() const { return history_; }

  // Victims of an earlier daemon, whose grace period continues.
  void resume(std::vector<Victim> victims);
  // Pods whose tolerationSeconds continue.
  void resume(std::vector<TaintTimer> timers);
  // Takes effect at the next turn; the history that still applies is kept.
  void reconfigure(Policy policy);
  // A cgroup was created or removed: a sweep follows no later than `at`.
  void request_sweep_by(Instant at) { sweep_schedule_.advance_to(at); }
  // The share of one CPU that sweeps may use.
  void set_cpu_budget(double budget) { sweep_schedule_.set_cpu_budget(budget); }
  // The actuator from the next act() on: dry or real.
  void use(Actuator& actuator) { actuator_ = &actuator; }

 private:
  void take_snapshot(SnapshotScope scope);

  Policy policy_;
  Observer* observer_;
  Actuator* actuator_;
  TurnMeter meter_;
  SweepSchedule sweep_schedule_;
  History history_;
  Snapshot snapshot_;
  Verdict verdict_;
  bool committed_ = true;  // history_ includes verdict_
  bool reported_ = true;   // the latest outcomes_
  std::vector<Outcome> outcomes_;
  std::vector<Outcome> finished_;  // of actions that earlier turns started; kept for its capacity
};

}  // namespace headroom::daemon
