// SPDX-License-Identifier: Apache-2.0
#include "observe/cgroup/cgroup_source.h"

#include "base/mountinfo.h"

#include <algorithm>
#include <fstream>

namespace headroom::observe {
namespace {

// Without memory there is nothing to evict by; cpu and pids carry the tiers and pid.available.
constexpr std::string_view kNeeded[] = {"memory", "cpu", "pids"};

// A v1 hierarchy that holds a controller; "name=systemd" holds none.
bool holds_controller(const Mount& mount) {
  if (mount.type != "cgroup") return false;
  for (std::string_view controller : {"memory", "cpu", "cpuset", "pids", "blkio", "cpuacct"})
    if (mount_option(mount, controller)) return true;
  return false;
}

std::string find_unsupported_reason(const CgroupRoot& root) {
  if (root.mount.empty()) return "cgroup v1 host: no cgroup2 is mounted";
  std::string missing;
  for (std::string_view controller : kNeeded)
    if (!root.has(controller)) missing += (missing.empty() ? "" : ", ") + std::string(controller);
  if (missing.empty()) return {};
  if (!root.unified)
    return "cgroup v1 or hybrid host: " + root.mount.string() + " lacks " + missing;
  return "the cgroup2 at " + root.mount.string() + " lacks " + missing +
         " (cgroup_disable= on the kernel's command line, or not built in)";
}

}  // namespace

bool CgroupRoot::has(std::string_view controller) const {
  return std::find(controllers.begin(), controllers.end(), controller) != controllers.end();
}

CgroupRoot find_cgroup_root(const std::filesystem::path& mountinfo) {
  CgroupRoot root;
  root.unified = true;
  int best = 0;  // how well the mount at hand is known
  for (const Mount& mount : read_mounts(mountinfo)) {
    if (holds_controller(mount)) root.unified = false;
    if (mount.type != "cgroup2") continue;
    const int rank = mount.point == "/sys/fs/cgroup"     ? 3
                     : mount.point.ends_with("/unified") ? 2
                                                         : 1;
    if (rank <= best) continue;
    best = rank;
    root.mount = mount.point;
  }
  if (root.mount.empty()) root.unified = false;
  std::ifstream controllers(root.mount / "cgroup.controllers");
  for (std::string controller; controllers >> controller;)
    root.controllers.push_back(controller);
  root.unsupported_reason = find_unsupported_reason(root);
  return root;
}

std::string group_list(std::uint32_t groups) {
  std::string list;
  for (std::size_t i = 0; i < HR_GROUPS; ++i) {
    if (!(groups & (1u << i))) continue;
    if (!list.empty()) list += ", ";
    list += kGroupNames[i];
  }
  return list.empty() ? "none" : list;
}

}  // namespace headroom::observe
