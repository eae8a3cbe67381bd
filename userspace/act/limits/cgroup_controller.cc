// SPDX-License-Identifier: Apache-2.0
#include "act/limits/cgroup_controller.h"

#include "act/limits/cgroup_setting_writer.h"

#include <algorithm>
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

}  // namespace headroom::act
