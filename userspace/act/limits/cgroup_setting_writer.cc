// SPDX-License-Identifier: Apache-2.0
#include "act/limits/cgroup_setting_writer.h"

#include "base/file_io.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

namespace headroom::act {
namespace {

constexpr const char* kSubtreeControl = "cgroup.subtree_control";

bool has_controller(const std::filesystem::path& cgroup, std::string_view controller) {
  std::ifstream file(cgroup / kSubtreeControl);
  for (std::string word; file >> word;)
    if (word == controller) return true;
  return false;
}

Result<> enable_in(const std::filesystem::path& cgroup, std::string_view controller) {
  if (has_controller(cgroup, controller)) return {};
  return write_cgroup_setting(cgroup, {kSubtreeControl, "+" + std::string(controller)});
}

}  // namespace

Result<> enable_controller(const std::filesystem::path& root, std::string_view path,
                           std::string_view controller, ControllerScope scope) {
  std::filesystem::path at = root;
  for (path.remove_prefix(std::min<std::size_t>(1, path.size())); !path.empty();) {
    if (auto result = enable_in(at, controller); !result) return result;
    const std::string_view part = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(path.size(), part.size() + 1));
    at /= part;
  }
  return scope == ControllerScope::kChildren ? enable_in(at, controller) : Result<>{};
}

CgroupValues without_systemd_property(const CgroupValues& values) {
  return {.memory_oom_group = values.memory_oom_group, .hugetlb_max = values.hugetlb_max};
}

Result<> write_cgroup_setting(const std::filesystem::path& cgroup, const CgroupSetting& setting) {
  const std::filesystem::path path = cgroup / setting.file;
  const Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file) return errno_failure("open " + path.native(), errno);
  if (::write(file.get(), setting.value.data(), setting.value.size()) < 0)
    return errno_failure("write " + setting.value + " to " + path.native(), errno);
  return {};
}

}  // namespace headroom::act
