// SPDX-License-Identifier: Apache-2.0
#include "act/limits/cgroup_controller.h"

#include "act/limits/cgroup_setting_writer.h"

#include <algorithm>
#include <fstream>

namespace headroom::act {
namespace {

constexpr const char* kGiven = "cgroup.subtree_control";

bool gives(const std::filesystem::path& cgroup, std::string_view controller) {
  std::ifstream file(cgroup / kGiven);
  for (std::string word; file >> word;)
    if (word == controller) return true;
  return false;
}

Result<> give(const std::filesystem::path& cgroup, std::string_view controller) {
  if (gives(cgroup, controller)) return {};
  return write_cgroup_setting(cgroup, {kGiven, "+" + std::string(controller)});
}

}  // namespace

Result<> give_controller(const std::filesystem::path& root, std::string_view path,
                         std::string_view controller, Reach reach) {
  std::filesystem::path at = root;
  for (path.remove_prefix(std::min<std::size_t>(1, path.size())); !path.empty();) {
    if (auto given = give(at, controller); !given) return given;
    const std::string_view part = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(path.size(), part.size() + 1));
    at /= part;
  }
  return reach == Reach::kChildren ? give(at, controller) : Result<>{};
}

}  // namespace headroom::act
