// SPDX-License-Identifier: Apache-2.0
// Engine: observes, judges and acts. It owns the history; it opens no file, uses no library, and
// gets the time as an argument.
//
// App::turn() calls the steps of a turn in this order: start(), collect_outcomes(),
// observe_and_judge(), act(), plan(), commit(). What they saw and did is readable until the next
// start().
#pragma once

#include "report/view/turn_cost.h"

#include <headroom/ports.h>
#include <headroom/units.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace headroom::daemon {

// TurnMeter: measures the time and the allocations of each stage of a turn.

class TurnMeter {
 public:
  using Now = Instant (*)();
  using Allocations = std::uint64_t (*)();

  TurnMeter(Now now, Allocations allocations) : now_(now), allocations_(allocations) {}

  void start(report::WakeSource wake) {
    cost_ = {};
    cost_.wake = wake;
    at_ = now_();
    began_ = before_acts_ = allocations_();
  }
  // Each of the next three is called at the end of its stage, and adds the time since the end of
  // the stage before it.
  void snapshot_done(SnapshotScope scope) {
    cost_.snapshot += lap();
    if (scope != SnapshotScope::kNode) cost_.scope = SnapshotScope::kCgroups;
  }
  void judged() {
    cost_.judge += lap();
    before_acts_ = allocations_();
  }
  void acted() {
    cost_.act += lap();
    cost_.allocations = allocations_() - began_;
    cost_.kill_path_allocations = allocations_() - before_acts_;
  }
  void planned(Duration sweep_period) { cost_.sweep_period = sweep_period; }
  const report::TurnCost& cost() const { return cost_; }

 private:
  Duration lap() {
    const Instant now = now_();
    const Duration took = now - at_;
    at_ = now;
    return took;
  }

  Now now_;
  Allocations allocations_;
  report::TurnCost cost_;
  Instant at_;
  std::uint64_t began_ = 0;
  std::uint64_t before_acts_ = 0;
};

// SweepSchedule: when the next sweep of every cgroup is due, and how soon the node may be looked at
// again, within the CPU budget of the loop.
//
// Over its budget the loop sweeps less often; a decision is always based on a sweep of its own.
// Looks are put off only after they have used up a credit: the moment before a threshold is crossed
// is short, and there each look is needed.

class SweepSchedule {
 public:
  using CpuTime = Duration (*)();  // of the loop's thread; only differences are used
  // The CPU budget delays a sweep at most until this long after the previous one.
  static constexpr Duration kMaxPeriod = std::chrono::seconds(60);
  // And a look at the node's memory, while it is above its thresholds, until this long after the
  // turn before it.
  static constexpr Duration kMaxLookPeriod = std::chrono::seconds(1);
  // The CPU time that looks may use before the budget delays them; the budget fills it up again.
  static constexpr Duration kLookCredit = std::chrono::seconds(2);

  explicit SweepSchedule(CpuTime cpu_time) : cpu_time_(cpu_time) {}

  // The share of one CPU; greater than 0.
  void set_cpu_budget(double budget) { budget_ = budget; }
  // Records a sweep at `at`; the next one is wanted after `period`.
  void record_sweep(Instant at, Duration period) {
    const Duration now = cpu_time_();
    // The first sweep counts as free: the CPU time before it includes the start of the daemon.
    const Duration cpu_time_used =
        cpu_time_at_last_sweep_ ? now - *cpu_time_at_last_sweep_ : Duration::zero();
    cpu_time_at_last_sweep_ = cpu_time_at_last_turn_ = now;
    affordable_ = at + std::min(affordable_period(cpu_time_used), kMaxPeriod);
    due_ = std::max(at + period, affordable_);
    period_ = due_ - at;
  }
  // Records a turn at `at` that looked at the node alone: once the credit is used up, the next such
  // turn is to be no sooner than the budget allows. The time of turns that swept is
  // record_sweep()'s.
  void record_look(Instant at) {
    const Duration now = cpu_time_();
    if (cpu_time_at_last_turn_) {
      look_credit_ = std::min(look_credit_ + cpu_time_in(at - last_look_), kLookCredit);
      look_credit_ -= now - *cpu_time_at_last_turn_;
      const Duration missing = std::max(-look_credit_, Duration::zero());
      next_look_ = at + std::min(affordable_period(missing), kMaxLookPeriod);
      // One look that was very expensive puts off the next one, not those after it.
      look_credit_ = std::max(look_credit_, -cpu_time_in(kMaxLookPeriod));
    }
    cpu_time_at_last_turn_ = now;
    last_look_ = at;
  }
  // Makes the next sweep due at `at`, or as soon after it as the budget allows; never later than it
  // was due before.
  void advance_to(Instant at) { due_ = std::min(due_, std::max(at, affordable_)); }
  // Makes the next sweep due at once.
  void reset() { due_ = {}; }

  Instant due() const { return due_; }
  // When the budget allows the next look.
  Instant next_look() const { return next_look_; }
  // The time from the latest sweep to the next one, as planned at the latest sweep.
  Duration period() const { return period_; }

 private:
  // What the budget allows in this time.
  Duration cpu_time_in(Duration time) const {
    const std::chrono::duration<double, Duration::period> allowed = time * budget_;
    return std::chrono::duration_cast<Duration>(allowed);
  }
  // How long it takes until this much CPU time is within the budget.
  Duration affordable_period(Duration cpu_time) const {
    const auto period = std::chrono::duration<double, Duration::period>(cpu_time) / budget_;
    return std::chrono::duration_cast<Duration>(period);
  }

  CpuTime cpu_time_;
  double budget_ = 1;
  std::optional<Duration> cpu_time_at_last_sweep_;
  std::optional<Duration> cpu_time_at_last_turn_;
  Instant affordable_;
  Duration look_credit_ = kLookCredit;  // below zero: over the budget
  Instant last_look_;
  Instant next_look_;
  Instant due_;
  Duration period_{0};
};

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
  // Adopts the history after this turn: the next turn is judged with it.
  void commit();

  const Snapshot& snapshot() const { return snapshot_; }
  const Verdict& verdict() const { return verdict_; }
  // The outcomes of actions of earlier turns, then those of this turn. They include the outcomes of
  // a turn that an exception ended before outcomes_reported().
  std::span<const Outcome> outcomes() const { return outcomes_; }
  void outcomes_reported() { reported_ = true; }
  const report::TurnCost& cost() const { return meter_.cost(); }
  // When the next turn is due if the guard watches memory until then; after plan().
  Instant next_guarded() const;
  const Policy& policy() const { return policy_; }
  const History& history() const { return history_; }

  // Adds the victims of an earlier daemon; their grace periods continue.
  void resume(std::vector<Victim> victims);
  // Sets the timers of pods whose tolerationSeconds continue.
  void resume(std::vector<TaintTimer> timers);
  // Takes effect at the next turn; the history that still applies is kept.
  void reconfigure(Policy policy);
  // A cgroup was created or removed: a sweep follows no later than `at`.
  void request_sweep_by(Instant at) { sweep_schedule_.advance_to(at); }
  // The share of one CPU that sweeps may use, and looks at memory that is above its thresholds.
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
  bool reported_ = true;   // outcomes_ were reported
  std::vector<Outcome> outcomes_;
  std::vector<Outcome> finished_;  // of actions that earlier turns started; kept for its capacity
};

}  // namespace headroom::daemon
