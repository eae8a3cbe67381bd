// SPDX-License-Identifier: Apache-2.0
// The site a daemon serves, put together from its configuration.
#pragma once

#include "config/config.h"
#include "daemon/sources/kubelet_container_names.h"
#include "report/http/server/router.h"
#include "report/metrics/reload_status.h"
#include "report/view/cpus_view.h"

#include <memory>
#include <vector>

namespace headroom::daemon {

// To be called when every BPF program is loaded: their cost is shown.
std::shared_ptr<report::Router> make_router(
    const config::Config& config, std::shared_ptr<report::PublishedViews> views,
    std::shared_ptr<report::PublishedCpusView> cpus,
    std::shared_ptr<const KubeletContainerNames> kubelet_names,
    std::shared_ptr<const report::ReloadStatus> reload);

// The parts of a node outside the pods, by the Summary API's names: where the configuration says
// they are, else where a systemd host has them.
std::vector<report::SystemContainer> system_containers(const config::Config& config);

}  // namespace headroom::daemon
