// SPDX-License-Identifier: Apache-2.0
#include "daemon/told.h"

#include "judge/eviction/threshold_config.h"
#include "report/journal.h"

#include <algorithm>
#include <utility>

namespace headroom::daemon {

observe::Filesystems filesystems_of(const config::Config& config) {
  return observe::find_filesystems({.nodefs = config.disk.nodefs,
                                    .imagefs = config.disk.imagefs,
                                    .containerfs = config.disk.containerfs});
}

config::Config completed(config::Config config, std::int64_t measured_fill,
                         const observe::Filesystems& filesystems) {
  Policy& policy = config.policy;
  if (!config.fastest_fill_told) policy.fastest_fill = std::max(policy.fastest_fill, measured_fill);
  auto whole = with_containerfs(std::move(policy.thresholds), filesystems.images);
  if (whole.overwritten)
    log::warning("thresholds of containerfs are not configured: they follow those of {}",
                 filesystems.images.dedicated && !filesystems.images.split ? "imagefs" : "nodefs");
  policy.thresholds = std::move(whole.thresholds);
  return config;
}

observe::DiskMeterOptions meter_options(const config::Config& config) {
  return {.paths = config.disk.paths,
          .period = config.disk.measure_every,
          .pace = {config.disk.walk_rate},
          .host_paths = config.disk.host_paths};
}

act::HostWays ways_of(const config::Config& config) {
  return {.paths = config.disk.paths,
          .reclaim_containers = config.reclaim.containers,
          .reclaim_images = config.reclaim.images,
          .reclaim_memory = config.reclaim.memory};
}

}  // namespace headroom::daemon
