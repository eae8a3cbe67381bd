// SPDX-License-Identifier: Apache-2.0
// KernelEventHandler: what the kernel's events ask of the loop. They advance the next sweep and are
// reported; they never decide.
#pragma once

#include <headroom/stall_abi.h>
#include <headroom/units.h>

#include <functional>
#include <optional>

namespace headroom::daemon {

class KernelEventHandler {
 public:
  // Cgroups come and go in crowds: one pass, so long after the first, is for all of them.
  static constexpr Duration kBatchDelay = std::chrono::milliseconds(100);

  struct Setup {
    std::function<bool(CgroupId)> is_victim;  // is it a victim of ours, not known to be gone?
    std::function<void(const hr_event&)> oom_kill;
    std::function<void(const hr_event&)> exited;
  };
  explicit KernelEventHandler(Setup setup) : setup_(std::move(setup)) {}

  void take(const hr_event& event);

  // When the cgroups should be looked at on their account. Asked after a batch of events; forgets
  // it. Absent: they ask for nothing.
  std::optional<Instant> due();

 private:
  Setup setup_;
  std::optional<Instant> due_;
};

}  // namespace headroom::daemon
