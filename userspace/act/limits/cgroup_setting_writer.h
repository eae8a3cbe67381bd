// SPDX-License-Identifier: Apache-2.0
// write_knob: one knob of a cgroup, written to its file: for those that systemd has no property
// for, and so does not write itself.
#pragma once

#include "judge/allocatable/cgroup/cgroup_values.h"

#include <headroom/result.h>

#include <filesystem>

namespace headroom::act {

// memory.oom.group and hugetlb.*; what else there is, unit_properties() tells.
CgroupValues without_systemd_property(const CgroupValues& values);

// None of them makes the writer wait.
Result<> write_cgroup_setting(const std::filesystem::path& cgroup, const CgroupSetting& setting);

}  // namespace headroom::act
