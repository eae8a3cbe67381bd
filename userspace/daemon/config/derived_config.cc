// SPDX-License-Identifier: Apache-2.0
#include "daemon/config/derived_config.h"

#include "base/log/journal.h"
#include "judge/eviction/threshold/threshold_config.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

namespace headroom::daemon {
namespace {

// What the configuration leaves to be found, where it was.
void set_found_values(config::Config& config, const observe::Filesystems& filesystems) {
  const auto set_found = [&](std::string_view path, const std::string& value) {
    for (config::ConfigSetting& setting : config.settings)
      if (setting.path == path && setting.value == "null" && !value.empty()) {
        setting.value = value;
        setting.origin = "found";
      }
  };
  const auto text = [](const std::filesystem::path& path) {
    return nlohmann::json(path.string())
        .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  set_found("headroom.fastestFill", std::to_string(config.policy.fastest_fill));
  set_found("headroom.podsCgroup", text(config.pods_cgroup));
  set_found("headroom.disk.nodefs", text(filesystems.nodefs));
  if (filesystems.imagefs) set_found("headroom.disk.imagefs", text(*filesystems.imagefs));
  if (filesystems.containerfs)
    set_found("headroom.disk.containerfs", text(*filesystems.containerfs));
}

}  // namespace

observe::Filesystems filesystems_of(const config::Config& config) {
  return observe::find_filesystems({.nodefs = config.disk.nodefs,
                                    .imagefs = config.disk.imagefs,
                                    .containerfs = config.disk.containerfs});
}

config::Config complete_config(config::Config config, std::int64_t measured_fill,
                               const observe::Filesystems& filesystems) {
  Policy& policy = config.policy;
  if (!config.fastest_fill_configured)
    policy.fastest_fill = std::max(policy.fastest_fill, measured_fill);
  auto whole = with_containerfs(std::move(policy.thresholds), filesystems.images);
  if (whole.overwritten)
    log::warning("thresholds of containerfs are not configured: they follow those of {}",
                 filesystems.images.dedicated && !filesystems.images.split ? "imagefs" : "nodefs");
  policy.thresholds = std::move(whole.thresholds);
  set_found_values(config, filesystems);
  return config;
}

observe::DiskMeterOptions disk_meter_options(const config::Config& config) {
  return {.paths = config.disk.paths,
          .period = config.disk.measure_period,
          .rate = {config.disk.walk_rate},
          .host_paths = config.disk.host_paths};
}

act::ActuatorOptions actuator_options_of(const config::Config& config) {
  return {.paths = config.disk.paths,
          .reclaim_containers = config.reclaim.containers,
          .reclaim_images = config.reclaim.images,
          .reclaim_memory = config.reclaim.memory};
}

}  // namespace headroom::daemon
