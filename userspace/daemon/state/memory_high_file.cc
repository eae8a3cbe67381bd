// SPDX-License-Identifier: Apache-2.0
#include "daemon/state/memory_high_file.h"

#include "base/atomic_file.h"
#include "daemon/state/state_file.h"

#include <cstdint>
#include <fstream>

#include <nlohmann/json.hpp>

namespace headroom::daemon {
namespace {

using nlohmann::json;

}  // namespace

MemoryHighFile::MemoryHighFile(const std::filesystem::path& state_dir)
    : path_(state_dir / "memory-high.json"), boot_id_(read_boot_id()) {}

Result<> MemoryHighFile::save(const act::MemoryHighOverrides::Found& found) const {
  if (found.empty()) {
    std::error_code error;
    std::filesystem::remove(path_, error);
    if (error) return errno_failure("remove " + path_.string(), error.value());
    return {};
  }
  json list = json::array();
  for (const auto& [cgroup, held] : found)
    list.push_back({{"cgroup", cgroup.value},
                    {"path", held.path},
                    {"found", held.found ? json(held.found->count) : json(nullptr)},
                    {"set", held.set.count}});
  const json whole{{"boot_id", boot_id_}, {"limits", std::move(list)}};
  return write_atomically(path_, whole.dump(1, ' ', false, json::error_handler_t::replace) + "\n");
}

Result<act::MemoryHighOverrides::Found> MemoryHighFile::load() const {
  act::MemoryHighOverrides::Found found;
  std::ifstream file(path_);
  if (!file) return found;
  try {
    const json whole = json::parse(file);
    if (whole.at("boot_id") != boot_id_) return found;
    for (const json& each : whole.at("limits")) {
      act::OriginalMemoryHigh high{
          .path = each.at("path"), .found = {}, .set = Bytes{each.at("set")}};
      if (!each.at("found").is_null()) high.found = Bytes{each.at("found")};
      found.emplace(CgroupId{each.at("cgroup").get<std::uint64_t>()}, std::move(high));
    }
  } catch (const json::exception& damaged) {
    return tl::make_unexpected(move_damaged_file(path_, damaged.what()));
  }
  return found;
}

}  // namespace headroom::daemon
