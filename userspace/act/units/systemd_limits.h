// SPDX-License-Identifier: Apache-2.0
// The limits of a cgroup that systemd has a setting for, by the name it has there.
#pragma once

#include "judge/allocatable/cgroup/cgroup_values.h"

namespace headroom::act {

// `add(name, value)` for each that there is.
template <class Add>
void for_each_limit(const CgroupValues& values, const Add& add) {
  const auto add_limit = [&](const char* name, const auto& limit) {
    if (limit) add(name, *limit);
  };
  add_limit("MemoryMin", values.memory_min);
  add_limit("MemoryLow", values.memory_low);
  add_limit("MemoryHigh", values.memory_high);
  add_limit("MemoryMax", values.memory_max);
  add_limit("MemorySwapMax", values.memory_swap_max);
  add_limit("TasksMax", values.pids_max);
}

}  // namespace headroom::act
