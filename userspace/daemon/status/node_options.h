// SPDX-License-Identifier: Apache-2.0
// The terms of this node, from its configuration and the host.
#pragma once

#include "config/config.h"
#include "daemon/status/node_status_tracker.h"

namespace headroom::daemon {

// Named by the configuration, else after the host as a kubelet is; labelled with what every kubelet
// labels its node with, and with what the configuration adds.
NodeOptions node_options_of(const config::Config& config);

// CPUs and huge pages.
Amounts machine_amounts();

}  // namespace headroom::daemon
