// SPDX-License-Identifier: Apache-2.0
// TurnMeter: what each stage of a turn took, in time and in allocations.
#pragma once

#include "report/view/turn_cost.h"

#include <headroom/units.h>

#include <cstdint>

namespace headroom::daemon {

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
  // The time since the last mark went into...
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

}  // namespace headroom::daemon
