// SPDX-License-Identifier: Apache-2.0
// write_cgroup_setting: one setting of a cgroup, written to its file: for those that systemd has no
// property for, and so does not write itself.
#pragma once

#include "judge/allocatable/cgroup/cgroup_values.h"

#include <headroom/result.h>

#include <filesystem>

namespace headroom::act {

// Only memory.oom.group and hugetlb.*: all others have a systemd property (unit_properties()).
CgroupValues without_systemd_property(const CgroupValues& values);

// None of them makes the writer wait.
Result<> write_cgroup_setting(const std::filesystem::path& cgroup, const CgroupSetting& setting);

}  // namespace headroom::act
