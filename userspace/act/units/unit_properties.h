// SPDX-License-Identifier: Apache-2.0
// UnitProperties: what is set of a unit, as systemd names and types it (org.freedesktop.systemd1).
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

// Of every field systemd has a setting for; memory.oom.group by OOMPolicy=. It has none for
// hugetlb.*.
std::vector<std::string> unit_assignments(const CgroupValues& values);

// The limits of a cgroup that systemd has a setting for, by the name it has there.

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

struct UnitProperty {
  using Value = std::variant<bool, std::uint64_t, std::string, std::vector<std::uint8_t>>;
  std::string name;
  Value value;
  friend bool operator==(const UnitProperty&, const UnitProperty&) = default;
};
using UnitProperties = std::vector<UnitProperty>;

// Of every field systemd has a property for. It has none for memory.oom.group and hugetlb.*.
UnitProperties unit_properties(const CgroupValues& values);

// What makes systemd give a slice these controllers and keep them. cpuset comes with AllowedCPUs=
// alone: all CPUs there can be, so that it limits nothing, whatever comes online.
UnitProperties controller_properties(std::span<const std::string> controllers,
                                     const CpuSet& possible);

}  // namespace headroom::act
