// SPDX-License-Identifier: Apache-2.0
#include "daemon/turn/engine.h"

#include <algorithm>
#include <utility>

namespace headroom::daemon {
namespace {

// More than this many decisions in one turn cannot happen: the condemned, and one more.
constexpr std::size_t kReserved = 64;

}  // namespace

Engine::Engine(Policy policy, Observer& observer, Actuator& actuator, Reporter& reporter,
               TurnMeter meter, SweepSchedule sweep_scheduler, OnTurnCost on_turn_cost)
    : policy_(std::move(policy)),
      observer_(&observer),
      actuator_(&actuator),
      reporter_(&reporter),
      meter_(meter),
      on_turn_cost_(std::move(on_turn_cost)),
      sweep_schedule_(sweep_scheduler) {
  // Grown before they are needed: the kill path allocates nothing.
  for (History* history : {&history_, &verdict_.after}) {
    history->victims.reserve(kReserved);
    history->partial_evictions.reserve(kReserved);
    history->thresholds.reserve(policy_.thresholds.size());
  }
  verdict_.decisions.reserve(kReserved);
  verdict_.eviction_ends.reserve(kReserved);
  verdict_.thresholds.reserve(policy_.thresholds.size());
  outcomes_.reserve(kReserved);
}

Snapshot Engine::take_snapshot(SnapshotScope depth) {
  const Snapshot snapshot = observer_->take_snapshot(depth);
  meter_.snapshot_done(depth);
  judge(policy_, snapshot, history_, verdict_);
  meter_.judged();
  return snapshot;
}

Instant Engine::turn(Instant now, report::WakeSource wake) {
  meter_.start(wake);
  actuator_->collect(finished_);
  for (const Outcome& outcome : finished_)
    record_outcome(outcome, history_);
  Snapshot snapshot =
      take_snapshot(now >= sweep_schedule_.due() ? SnapshotScope::kCgroups : SnapshotScope::kNode);
  // From the same history: the verdict of the shallower look is void.
  if (verdict_.needs_cgroups || !verdict_.decisions.empty()) {
    const bool changed = snapshot.cgroups_changed;
    snapshot = take_snapshot(SnapshotScope::kDecision);
    snapshot.cgroups_changed |= changed;
  }
  act(snapshot);
  meter_.acted();
  outcomes_.insert(outcomes_.begin(), finished_.begin(), finished_.end());
  if (verdict_.measure_disks) observer_->measure_disks();
  if (snapshot.cgroups) sweep_schedule_.record_sweep(snapshot.at, policy_.sweep_period);
  meter_.planned(sweep_schedule_.period());
  on_turn_cost_(meter_.cost());
  reporter_->report_turn(snapshot, verdict_, outcomes_);
  std::swap(history_, verdict_.after);
  if (snapshot.cgroups) verdict_.ranking.reserve(snapshot.pods.size());
  return std::min(verdict_.next_check, sweep_schedule_.due());
}

void Engine::act(const Snapshot& snapshot) {
  if (snapshot.cgroups) actuator_->update_kill_fds(snapshot.pods);
  outcomes_.clear();
  for (const Decision& decision : verdict_.decisions) {
    outcomes_.push_back(actuator_->act(decision));
    record_outcome(outcomes_.back(), verdict_.after);
  }
}

void Engine::resume(std::vector<Victim> victims) {
  for (Victim& victim : victims)
    history_.victims.push_back(std::move(victim));
}

void Engine::resume(std::vector<TaintTimer> timers) {
  history_.taint_timers = std::move(timers);
}

void Engine::reconfigure(Policy policy) {
  history_ = carry_over(policy_, history_, policy);
  policy_ = std::move(policy);
  sweep_schedule_.reset();  // what it makes of every pod is seen at once
}

}  // namespace headroom::daemon
