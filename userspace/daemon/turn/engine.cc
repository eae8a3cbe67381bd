// SPDX-License-Identifier: Apache-2.0
#include "daemon/turn/engine.h"

#include <algorithm>
#include <utility>

namespace headroom::daemon {
namespace {

// One turn cannot make more decisions than this: one for each current victim, and a new one.
constexpr std::size_t kReserved = 64;

}  // namespace

Engine::Engine(Policy policy, Observer& observer, Actuator& actuator, TurnMeter meter,
               SweepSchedule sweep_schedule)
    : policy_(std::move(policy)),
      observer_(&observer),
      actuator_(&actuator),
      meter_(meter),
      sweep_schedule_(sweep_schedule) {
  // Reserved now because the kill path must not allocate.
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

void Engine::start(report::WakeSource wake) {
  // An exception may have ended the last turn after it acted: its actions must not be forgotten.
  commit();
  if (std::exchange(reported_, false)) outcomes_.clear();
  meter_.start(wake);
}

void Engine::collect_outcomes() {
  actuator_->collect(finished_);
  for (const Outcome& outcome : finished_)
    record_outcome(outcome, history_);
  outcomes_.insert(outcomes_.end(), finished_.begin(), finished_.end());
  finished_.clear();
}

void Engine::take_snapshot(SnapshotScope scope) {
  snapshot_ = observer_->take_snapshot(scope);
  meter_.snapshot_done(scope);
  judge(policy_, snapshot_, history_, verdict_);
  meter_.judged();
}

void Engine::observe_and_judge(Instant now) {
  take_snapshot(now >= sweep_schedule_.due() ? SnapshotScope::kCgroups : SnapshotScope::kNode);
  if (!verdict_.needs_cgroups && verdict_.decisions.empty()) return;
  // The second snapshot is judged with the same history, and its verdict replaces the first one.
  const bool changed = snapshot_.cgroups_changed;
  take_snapshot(SnapshotScope::kDecision);
  snapshot_.cgroups_changed |= changed;
}

void Engine::act() {
  committed_ = false;
  if (snapshot_.cgroups) actuator_->update_kill_fds(snapshot_.pods);
  for (const Decision& decision : verdict_.decisions) {
    outcomes_.push_back(actuator_->act(decision));
    record_outcome(outcomes_.back(), verdict_.after);
  }
  meter_.acted();
}

Instant Engine::plan() {
  if (verdict_.measure_disks) observer_->measure_disks();
  if (snapshot_.cgroups)
    sweep_schedule_.record_sweep(snapshot_.at, policy_.sweep_period);
  else
    sweep_schedule_.record_look(snapshot_.at);
  meter_.planned(sweep_schedule_.period());
  // What is not for memory above its thresholds is not put off.
  const Instant look = std::max(verdict_.next_check, sweep_schedule_.next_look());
  return std::min({look, verdict_.next_check_guarded, sweep_schedule_.due()});
}

Instant Engine::next_guarded() const {
  return std::min(verdict_.next_check_guarded, sweep_schedule_.due());
}

void Engine::commit() {
  if (std::exchange(committed_, true)) return;
  std::swap(history_, verdict_.after);
  if (snapshot_.cgroups) verdict_.ranking.reserve(snapshot_.pods.size());
}

void Engine::resume(std::vector<Victim> victims) {
  for (Victim& victim : victims)
    history_.victims.push_back(std::move(victim));
}

void Engine::resume(std::vector<TaintTimer> timers) {
  history_.taint_timers = std::move(timers);
}

void Engine::reconfigure(Policy policy) {
  commit();
  history_ = carry_over(policy_, history_, policy);
  policy_ = std::move(policy);
  sweep_schedule_.reset();  // so that the next turn judges every pod by the new policy
}

}  // namespace headroom::daemon
