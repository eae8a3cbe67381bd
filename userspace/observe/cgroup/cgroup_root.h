// SPDX-License-Identifier: Apache-2.0
// CgroupRoot: where this host keeps cgroup v2, and whether headroom can work there.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::observe {

struct CgroupRoot {
  std::filesystem::path mount;           // of cgroup2; empty if there is none
  bool unified = false;                  // no controller is held by a cgroup v1 hierarchy
  std::vector<std::string> controllers;  // the root's cgroup.controllers
  std::string unsupported_reason;        // one line: why headroom cannot work; empty if it can

  bool has(std::string_view controller) const;
};

// Reads a mountinfo(5) and the root's cgroup.controllers. Of several cgroup2 mounts it takes
// /sys/fs/cgroup, else /sys/fs/cgroup/unified (systemd's hybrid layout), else the first.
CgroupRoot find_cgroup_root(const std::filesystem::path& mountinfo = "/proc/self/mountinfo");

}  // namespace headroom::observe
