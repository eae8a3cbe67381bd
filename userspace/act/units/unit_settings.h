// SPDX-License-Identifier: Apache-2.0
// The values of a cgroup as unit settings, "MemoryMax=134217728", for systemd-run --property.
#pragma once

#include "judge/allocatable/cgroup/cgroup_values.h"

#include <string>
#include <vector>

namespace headroom::act {

// Of every field systemd has a setting for; memory.oom.group by OOMPolicy=. It has none for
// hugetlb.*.
std::vector<std::string> unit_assignments(const CgroupValues& values);

}  // namespace headroom::act
