// SPDX-License-Identifier: Apache-2.0
// CpuWindows: what each CPU did during a window, summed for the set of CPUs that a group may use.
#pragma once

#include <headroom/cpuset.h>

#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace headroom {

// Times below are in nanoseconds, as doubles: they are parts of a window of seconds.
using Nanoseconds = double;

// The time of one CPU during the window.
struct CpuWindow {
  Nanoseconds idle = 0;
  Nanoseconds interrupts = 0;  // irq, softirq, steal
  Nanoseconds tasks = 0;       // user, nice, system
};

// What the CPUs of a group, and the others, did during the window.
struct CpusOfGroup {
  bool any = false;            // a CPU of the group is online
  Nanoseconds most_idle = 0;   // of one CPU of the group
  Nanoseconds busy = 0;        // of all of the group, with interrupts
  Nanoseconds interrupts = 0;  // of these
  double others_busy = 1;      // the probability that all others were busy at once
};

class CpuWindows {
 public:
  CpuWindows() = default;
  // By number; an absent one is offline.
  explicit CpuWindows(std::vector<std::optional<CpuWindow>> cpus) : cpus_(std::move(cpus)) {}

  std::span<const std::optional<CpuWindow>> each() const { return cpus_; }
  // Good for as long as this. Sums are kept: thousands of groups use a few sets.
  const CpusOfGroup& of(const CpuSet& own);

 private:
  struct Known {
    CpuSet cpus;
    CpusOfGroup sums;
  };

  CpusOfGroup sum(const CpuSet& own) const;

  std::vector<std::optional<CpuWindow>> cpus_;
  std::deque<Known> known_;
};

}  // namespace headroom
