// SPDX-License-Identifier: Apache-2.0
// The node's cgroups outside the pods, by the Summary API's names: as configured, else as on a
// systemd host.
#pragma once

#include "config/config.h"
#include "report/summary/summary.h"

#include <vector>

namespace headroom::daemon {

std::vector<report::SystemContainer> system_containers(const config::Config& config);

}  // namespace headroom::daemon
