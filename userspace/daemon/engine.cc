// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine.h"

#include <algorithm>
#include <utility>

namespace headroom::daemon {
namespace {

// More than this many decisions in one turn cannot happen: the condemned, and one more.
constexpr std::size_t kRoom = 64;

}  // namespace

Engine::Engine(Policy policy, Observer& observer, Actuator& actuator, Reporter& reporter)
    : policy_(std::move(policy)), observer_(&observer), actuator_(&actuator), reporter_(&reporter) {
  // Grown before they are needed: the kill path allocates nothing.
  for (History* history : {&history_, &verdict_.after}) {
    history->victims.reserve(kRoom);
    history->thresholds.reserve(policy_.thresholds.size());
  }
  verdict_.decisions.reserve(kRoom);
  verdict_.farewells.reserve(kRoom);
  verdict_.thresholds.reserve(policy_.thresholds.size());
  outcomes_.reserve(kRoom);
}

Snapshot Engine::look(Instant now) {
  const bool sweep_due = now >= next_sweep_;
  Snapshot snapshot = observer_->look(sweep_due ? Depth::kCgroups : Depth::kNode);
  judge(policy_, snapshot, history_, verdict_);
  if (verdict_.look_closer) {
    snapshot = observer_->look(Depth::kCgroups);
    judge(policy_, snapshot, history_, verdict_);
  }
  return snapshot;
}

Instant Engine::turn(Instant now) {
  const Snapshot snapshot = look(now);
  if (snapshot.cgroups) actuator_->arm(snapshot.pods);
  act();
  reporter_->tell(snapshot, verdict_, outcomes_);
  std::swap(history_, verdict_.after);
  if (snapshot.cgroups) {
    verdict_.ranking.reserve(snapshot.pods.size());
    next_sweep_ = snapshot.at + policy_.sweep_period;
  }
  return std::min(verdict_.next_check, next_sweep_);
}

void Engine::act() {
  outcomes_.clear();
  for (const Decision& decision : verdict_.decisions) {
    outcomes_.push_back(actuator_->act(decision));
    learn(outcomes_.back(), verdict_.after);
  }
}

void Engine::resume(std::vector<Victim> victims) {
  for (Victim& victim : victims) history_.victims.push_back(std::move(victim));
}

void Engine::adopt(Policy policy) {
  history_ = carry_over(policy_, history_, policy);
  policy_ = std::move(policy);
}

}  // namespace headroom::daemon
