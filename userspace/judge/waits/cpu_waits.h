// SPDX-License-Identifier: Apache-2.0
// attribute(): why a group of tasks waited for a CPU during a window, from what the kernel counts
// anyway: cpu.pressure, throttling, the time of each CPU, cpu.weight. No context switch is hooked.
//
// The waits are those of cpu.pressure ("some"), which includes the time in which cpu.max stops the
// tasks. What is taken from them, in this order:
//  1. the time at a quota, as the scheduler counts it;
//  2. what is more than the time in which every CPU of the group was busy, in this window and in
//     the end of the last one: a CPU was idle then, and the scheduler had not moved the task yet;
//  3. interrupts' and steal's share of the time of the group's CPUs;
//  4. the probability that a CPU was idle that the group may not use;
//  5. the share of the busy time that went to groups with a larger share by cpu.weight.
// What is left is the node's own shortage.
#pragma once

#include "judge/waits/cpu_windows.h"

#include <headroom/waits.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace headroom {

// A group of tasks that ran during the window: a pod, or a cgroup outside pods.
struct Runner {
  std::size_t group = 0;  // the caller's number of it
  Nanoseconds ran = 0;
  double share = 0;  // of the node's CPU time by cpu.weight, among the cgroups that wanted CPUs
};

// Runners, prepared so that each waiting group is compared with all of them in logarithmic time.
class RunnersByShare {
 public:
  // `kernel`: what ran outside all cgroups; it has no weight.
  RunnersByShare(std::vector<Runner> runners, Nanoseconds kernel);

  // The part of the time that went to runners because their share is larger than this one: 0 if
  // none is, near 1 if all are much larger.
  double lost_to_larger(double share) const;
  std::span<const Runner> runners() const { return runners_; }  // by share, ascending
  Nanoseconds ran() const { return ran_; }

 private:
  std::vector<Runner> runners_;
  std::vector<Nanoseconds> ran_from_;      // of runners_[i] and all after it
  std::vector<double> ran_by_share_from_;  // their sum of ran / share
  Nanoseconds ran_ = 0;                    // all, with the kernel
};

// Waits of a window, by cause.
using WindowWaits = std::array<Nanoseconds, kCpuWaitCauses>;

struct WaitingGroup {
  Nanoseconds window = 0;
  Nanoseconds waited = 0;        // at most the window
  Nanoseconds quota = 0;         // time at its own quota
  Nanoseconds parent_quota = 0;  // time at the quota of a cgroup above
  // Earlier time in which every CPU of the group was busy, and of which no wait was seen yet:
  // cpu.pressure is late.
  Nanoseconds busy_before = 0;
  const CpusOfGroup* cpus = nullptr;  // that it may use; null: unknown
  std::optional<double> share;        // as Runner::share; absent: unknown
};

// Without CPUs, or without one that is online, what is not a quota's is unknown.
WindowWaits attribute(const WaitingGroup& group, const RunnersByShare& runners);

// The time in which every CPU of the group was busy; 0 if its CPUs are unknown.
Nanoseconds busy_time(const WaitingGroup& group);

// How long tasks of a cgroup waited for its quota during the window. cpu.stat adds up the waits of
// every CPU's run queue; this is the time of one of them.
struct ThrottleWindow {
  Nanoseconds throttled = 0;  // throttled_usec
  // Of the waits that ended: of all run queues together, and the time in which at least one of them
  // waited. 0: none ended, or they are not watched.
  Nanoseconds queues_waited = 0, any_waited = 0;
  Nanoseconds ran = 0;  // CPU time of the cgroup
};
Nanoseconds time_at_quota(const ThrottleWindow& throttle, Nanoseconds window);

}  // namespace headroom
