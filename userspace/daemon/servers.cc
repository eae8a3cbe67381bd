// SPDX-License-Identifier: Apache-2.0
#include "daemon/servers.h"

#include "base/log/journal.h"

#include <utility>

namespace headroom::daemon {

void Servers::start(const config::Config& config, report::DbusSetup bus,
                    std::shared_ptr<report::Router> router) {
  if (!config.node_status.empty())
    node_status_writer_ = std::make_unique<NodeStatusWriter>(config.node_status);
  auto thread = report::DbusThread::start(std::move(bus));
  if (thread)
    bus_ = std::move(*thread);
  else
    log::warning("D-Bus: {}; headroomctl cannot reach this daemon", thread.error().what);
  if (!router) return;
  auto http = report::HttpServer::open(config.listen, std::move(router), {}, heartbeat_);
  if (http)
    http_ = std::move(*http);
  else
    log::error("{}; metrics are not served", http.error().what);
}

}  // namespace headroom::daemon
