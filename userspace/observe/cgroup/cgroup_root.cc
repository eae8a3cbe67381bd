// SPDX-License-Identifier: Apache-2.0
#include "observe/cgroup/cgroup_root.h"

#include "base/mountinfo.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

namespace headroom::observe {
namespace {

constexpr std::string_view kRemedy =
    "boot with systemd.unified_cgroup_hierarchy=1 cgroup_no_v1=all";
// Without memory there is nothing to evict by; cpu and pids carry the tiers and pid.available.
constexpr std::string_view kNeeded[] = {"memory", "cpu", "pids"};

struct Mount {
  std::string point;
  std::string type;
  std::string options;  // of the superblock: "rw,memory" for a cgroup v1 hierarchy
};

// id parent major:minor root point options [tag]... - type source superblock-options
std::optional<Mount> mount_in(const std::string& line) {
  std::istringstream words(line);
  std::vector<std::string> word{std::istream_iterator<std::string>(words), {}};
  const auto dash = std::find(word.begin(), word.end(), "-");
  if (dash - word.begin() < 6 || word.end() - dash < 4) return std::nullopt;
  return Mount{unescaped_mount(word[4]), dash[1], dash[3]};
}

// A v1 hierarchy that holds a controller; "name=systemd" holds none.
bool holds_controller(const Mount& mount) {
  if (mount.type != "cgroup") return false;
  std::istringstream options(mount.options);
  for (std::string option; std::getline(options, option, ',');)
    for (std::string_view controller : {"memory", "cpu", "cpuset", "pids", "blkio", "cpuacct"})
      if (option == controller) return true;
  return false;
}

std::string find_unsupported_reason(const CgroupRoot& root) {
  if (root.mount.empty()) return "cgroup v1 host: no cgroup2 is mounted; " + std::string(kRemedy);
  std::string missing;
  for (std::string_view controller : kNeeded)
    if (!root.has(controller)) missing += (missing.empty() ? "" : ", ") + std::string(controller);
  if (missing.empty()) return {};
  if (!root.unified)
    return "cgroup v1 or hybrid host: " + root.mount.string() + " lacks " + missing + "; " +
           std::string(kRemedy);
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
  std::ifstream lines(mountinfo);
  for (std::string line; std::getline(lines, line);) {
    const auto mount = mount_in(line);
    if (!mount) continue;
    if (holds_controller(*mount)) root.unified = false;
    if (mount->type != "cgroup2") continue;
    const int rank = mount->point == "/sys/fs/cgroup"     ? 3
                     : mount->point.ends_with("/unified") ? 2
                                                          : 1;
    if (rank <= best) continue;
    best = rank;
    root.mount = mount->point;
  }
  if (root.mount.empty()) root.unified = false;
  std::ifstream controllers(root.mount / "cgroup.controllers");
  for (std::string controller; controllers >> controller;)
    root.controllers.push_back(controller);
  root.unsupported_reason = find_unsupported_reason(root);
  return root;
}

}  // namespace headroom::observe
