// SPDX-License-Identifier: Apache-2.0
// The options of the daemon's parts, derived from the configuration and from this host.
#pragma once

#include "act/host_actuator.h"
#include "config/config.h"
#include "observe/node/disk_meter.h"
#include "observe/node/filesystems.h"

#include <cstdint>

namespace headroom::daemon {

observe::Filesystems filesystems_of(const config::Config& config);

// The policy made whole: the watch outruns what was measured unless the operator says what the
// machine can do, and containerfs follows the filesystem it is on.
config::Config complete_config(config::Config config, std::int64_t measured_fill,
                               const observe::Filesystems& filesystems);

observe::DiskMeterOptions disk_meter_options(const config::Config& config);
act::ActuatorOptions actuator_options_of(const config::Config& config);

}  // namespace headroom::daemon
