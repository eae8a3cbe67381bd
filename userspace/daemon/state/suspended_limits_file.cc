// SPDX-License-Identifier: Apache-2.0
#include "daemon/state/suspended_limits_file.h"

#include "base/atomic_file.h"
#include "daemon/state/state_file.h"

#include <cstdint>
#include <fstream>
#include <map>

#include <nlohmann/json.hpp>

namespace headroom::daemon {
namespace {

using nlohmann::json;

}  // namespace

SuspendedLimitsFile::SuspendedLimitsFile(const std::filesystem::path& state_dir)
    : path_(state_dir / "lifted-limits.json"), boot_id_(read_boot_id()) {}

Result<> SuspendedLimitsFile::save(const act::SuspendedLimits::Found& found) const {
  if (found.empty()) {
    std::error_code error;
    std::filesystem::remove(path_, error);
    if (error) return errno_failure("remove " + path_.string(), error.value());
    return {};
  }
  json list = json::array();
  for (const auto& [cgroup, limits] : found)
    list.push_back({{"cgroup", cgroup.value}, {"path", limits.path}, {"found", limits.values}});
  const json whole{{"boot_id", boot_id_}, {"limits", std::move(list)}};
  return write_atomically(path_, whole.dump(1, ' ', false, json::error_handler_t::replace) + "\n");
}

Result<act::SuspendedLimits::Found> SuspendedLimitsFile::load() const {
  act::SuspendedLimits::Found found;
  std::ifstream file(path_);
  if (!file) return found;
  try {
    const json whole = json::parse(file);
    if (whole.at("boot_id") != boot_id_) return found;
    for (const json& each : whole.at("limits"))
      found.emplace(CgroupId{each.at("cgroup").get<std::uint64_t>()},
                    act::OriginalLimits{
                        .path = each.at("path"),
                        .values = each.at("found").get<std::map<std::string, std::string>>()});
  } catch (const json::exception& damaged) {
    return tl::make_unexpected(move_damaged_file(path_, damaged.what()));
  }
  return found;
}

}  // namespace headroom::daemon
