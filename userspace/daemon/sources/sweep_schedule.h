// SPDX-License-Identifier: Apache-2.0
// SweepSchedule: when the next sweep of every cgroup is due, within the CPU budget of the loop.
//
// Over its budget the loop sweeps less often; a decision is always based on a sweep of its own.
#pragma once

#include <headroom/units.h>

#include <algorithm>
#include <chrono>
#include <optional>

namespace headroom::daemon {

class SweepSchedule {
 public:
  using CpuTime = Duration (*)();  // of the loop's thread, counted from any moment
  // Whatever it costs.
  static constexpr Duration kMaxPeriod = std::chrono::seconds(60);

  explicit SweepSchedule(CpuTime cpu_time) : cpu_time_(cpu_time) {}

  // The share of one CPU, more than none.
  void set_cpu_budget(double budget) { budget_ = budget; }
  // A pass was made, and another is wanted after `period`.
  void record_sweep(Instant at, Duration period) {
    const Duration now = cpu_time_();
    // What it cost to start is not what it costs to go on.
    const Duration cpu_time_used =
        cpu_time_at_last_sweep_ ? now - *cpu_time_at_last_sweep_ : Duration::zero();
    cpu_time_at_last_sweep_ = now;
    const auto min_period =
        std::chrono::duration<double, Duration::period>(cpu_time_used) / budget_;
    affordable_ = at + std::min(std::chrono::duration_cast<Duration>(min_period), kMaxPeriod);
    due_ = std::max(at + period, affordable_);
    period_ = due_ - at;
  }
  // Something happened: as early as this, or as soon as can be afforded.
  void advance_to(Instant at) { due_ = std::min(due_, std::max(at, affordable_)); }
  // At once.
  void reset() { due_ = {}; }

  Instant due() const { return due_; }
  // Between the latest pass and the next, as it was planned.
  Duration period() const { return period_; }

 private:
  CpuTime cpu_time_;
  double budget_ = 1;
  std::optional<Duration> cpu_time_at_last_sweep_;
  Instant affordable_;
  Instant due_;
  Duration period_{0};
};

}  // namespace headroom::daemon
