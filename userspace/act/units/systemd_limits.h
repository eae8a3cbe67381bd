// SPDX-License-Identifier: Apache-2.0
// The limits of a cgroup that systemd has a setting for, by the name it has there.
#pragma once

#include "judge/allocatable/cgroup/cgroup_values.h"

namespace headroom::act {

// `add(name, value)` for each that there is.
template <class Add>
void each_limit(const CgroupValues& values, const Add& add) {
  const auto tell = [&](const char* name, const auto& limit) {
    if (limit) add(name, *limit);
  };
  tell("MemoryMin", values.memory_min);
  tell("MemoryLow", values.memory_low);
  tell("MemoryHigh", values.memory_high);
  tell("MemoryMax", values.memory_max);
  tell("MemorySwapMax", values.memory_swap_max);
  tell("TasksMax", values.pids_max);
}

}  // namespace headroom::act
