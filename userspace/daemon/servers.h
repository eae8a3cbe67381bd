// SPDX-License-Identifier: Apache-2.0
// Servers: the threads that others read the daemon through: D-Bus, HTTP and the node status file.
// The daemon runs without those that cannot start.
#pragma once

#include "base/clock.h"
#include "daemon/http_setup.h"
#include "daemon/status/status_file.h"
#include "report/dbus/dbus_thread.h"
#include "report/heartbeat.h"
#include "report/http/server/http_server.h"

#include <cstdint>
#include <memory>

namespace headroom::daemon {

class Servers {
 public:
  // Everything that the setup refers to must outlive this. Without `router` nothing is served by
  // HTTP.
  void start(const config::Config& config, report::DbusSetup bus,
             std::shared_ptr<report::Router> router);

  // These never block; what is not running is skipped.
  void submit_status(const report::NodeStatusRef& status) {
    if (node_status_writer_) node_status_writer_->submit(status);
  }
  void evicted(const report::Eviction& eviction) {
    if (bus_) bus_->evicted(eviction);
  }
  std::uint64_t lost_signals() const { return bus_ ? bus_->lost() : 0; }
  // Beaten by the loop, read by health checks.
  report::Heartbeat& heartbeat() { return *heartbeat_; }

 private:
  const std::shared_ptr<report::Heartbeat> heartbeat_ =
      std::make_shared<report::Heartbeat>(&observe::now);
  std::unique_ptr<NodeStatusWriter> node_status_writer_;
  std::unique_ptr<report::HttpServer> http_;
  std::unique_ptr<report::DbusThread> bus_;
};

}  // namespace headroom::daemon
