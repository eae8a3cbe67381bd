// SPDX-License-Identifier: Apache-2.0
// write_cgroup_setting: one setting of a cgroup, written to its file: for those that systemd has no
// property for, and so does not write itself.
#pragma once

#include "judge/allocatable/cgroup/cgroup_values.h"

#include <headroom/result.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace headroom::act {

// A controller that systemd knows nothing of, and so neither gives nor takes: hugetlb.

enum class ControllerScope {
  kItself,    // the cgroup has it
  kChildren,  // and so have those directly below
};

// From the root on down to the cgroup at `path` ("/kubepods.slice"), wherever it is not yet.
Result<> enable_controller(const std::filesystem::path& root, std::string_view path,
                           std::string_view controller, ControllerScope scope);

// Only memory.oom.group and hugetlb.*: all others have a systemd property (unit_properties()).
CgroupValues without_systemd_property(const CgroupValues& values);

// None of them makes the writer wait.
Result<> write_cgroup_setting(const std::filesystem::path& cgroup, const CgroupSetting& setting);

}  // namespace headroom::act
