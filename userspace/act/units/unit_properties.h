// SPDX-License-Identifier: Apache-2.0
// UnitProperties: properties of a unit by systemd's names and types (org.freedesktop.systemd1).
#pragma once

#include "judge/allocatable/cgroup/cgroup_values.h"

#include <headroom/cpuset.h>

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace headroom::act {

// The values of a cgroup as unit settings, "MemoryMax=134217728", for systemd-run --property.

// For every field that has a setting in systemd; memory.oom.group is OOMPolicy=. hugetlb.* has
// none.
std::vector<std::string> unit_assignments(const CgroupValues& values);

// The limits of a cgroup that have a setting in systemd, by its names.

// Calls `add(name, value)` for each limit that is set.
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

struct UnitProperty {
  using Value = std::variant<bool, std::uint64_t, std::string, std::vector<std::uint8_t>>;
  std::string name;
  Value value;
  friend bool operator==(const UnitProperty&, const UnitProperty&) = default;
};
using UnitProperties = std::vector<UnitProperty>;

// For every field that has a property in systemd. memory.oom.group and hugetlb.* have none.
UnitProperties unit_properties(const CgroupValues& values);

// Properties by which systemd enables these controllers for a slice and keeps them enabled. cpuset
// needs AllowedCPUs=: all possible CPUs, so that it limits nothing, whichever CPUs come online.
UnitProperties controller_properties(std::span<const std::string> controllers,
                                     const CpuSet& possible);

}  // namespace headroom::act
