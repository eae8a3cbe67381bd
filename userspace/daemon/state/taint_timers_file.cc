// SPDX-License-Identifier: Apache-2.0
#include "daemon/state/taint_timers_file.h"

#include "base/atomic_file.h"
#include "daemon/state/state_file.h"

#include <algorithm>
#include <cstdint>
#include <fstream>

#include <nlohmann/json.hpp>

namespace headroom::daemon {
namespace {

using nlohmann::json;

bool same(const TaintTimer& a, const TaintTimer& b) {
  return a.cgroup == b.cgroup && a.started == b.started && a.length == b.length;
}

json to_json(const TaintTimer& timer) {
  return {{"cgroup", timer.cgroup.value},
          {"started", timer.started.time_since_epoch().count()},
          {"length", timer.length.count()}};
}

TaintTimer timer_from(const json& from) {
  return {.cgroup = CgroupId{from.at("cgroup").get<std::uint64_t>()},
          .started = Instant(Duration(from.at("started").get<std::int64_t>())),
          .length = Duration(from.at("length").get<std::int64_t>())};
}

}  // namespace

TaintTimersFile::TaintTimersFile(const std::filesystem::path& state_dir)
    : path_(state_dir / "taint-timers.json"), boot_id_(read_boot_id()) {}

Result<> TaintTimersFile::save(const std::vector<TaintTimer>& timers) {
  if (std::equal(timers.begin(), timers.end(), saved_.begin(), saved_.end(), same)) return {};
  json list = json::array();
  for (const TaintTimer& timer : timers)
    list.push_back(to_json(timer));
  const json whole{{"boot_id", boot_id_}, {"timers", std::move(list)}};
  if (auto written =
          write_atomically(path_, whole.dump(1, ' ', false, json::error_handler_t::replace) + "\n");
      !written)
    return written;
  saved_ = timers;
  return {};
}

Result<std::vector<TaintTimer>> TaintTimersFile::load() {
  std::ifstream file(path_);
  std::vector<TaintTimer> timers;
  if (!file) return timers;
  try {
    const json whole = json::parse(file);
    if (whole.at("boot_id") != boot_id_) return timers;
    for (const json& entry : whole.at("timers"))
      timers.push_back(timer_from(entry));
  } catch (const json::exception& damaged) {
    return tl::make_unexpected(move_damaged_file(path_, damaged.what()));
  }
  saved_ = timers;
  return timers;
}

}  // namespace headroom::daemon
