// SPDX-License-Identifier: Apache-2.0
// ExtenderServer: answers kube-scheduler's extender requests over HTTP, or HTTPS with a
// certificate: POST /filter and /prioritize; GET /healthz and /readyz. It keeps nothing between
// requests.
#pragma once

#include "base/clock.h"
#include "kube/extender/extender_request.h"
#include "kube/metrics/server_certificate.h"

#include <headroom/result.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

struct MHD_Connection;
struct MHD_Daemon;

namespace headroom::kube {

struct ExtenderPorts {
  FindSummary find;                // on any thread
  std::function<WallTime()> now;   // on any thread
  std::function<bool()> is_ready;  // false: the nodes were not listed yet
};

class ExtenderServer {
 public:
  static constexpr unsigned kMaxConnections = 32;
  // Longer than kube-scheduler keeps an idle connection (90 s), so that none ends under a request.
  static constexpr unsigned kIdleSeconds = 120;
  // Of all bodies that are being received or answered; more are refused with 503.
  static constexpr std::size_t kMaxBodies = std::size_t{32} << 20;  // bytes

  // `address` as headroom.listen. Without a certificate it serves plain HTTP.
  static Result<std::unique_ptr<ExtenderServer>> open(
      const std::string& address, const std::optional<ServerCertificate>& certificate,
      ExtenderPorts ports);
  ~ExtenderServer();
  ExtenderServer(const ExtenderServer&) = delete;
  ExtenderServer& operator=(const ExtenderServer&) = delete;

  int port() const { return port_; }

 private:
  struct Requests;
  struct Body;
  struct Stop {
    void operator()(MHD_Daemon* daemon) const;
  };
  explicit ExtenderServer(ExtenderPorts ports) : ports_(std::move(ports)) {}

  const ExtenderPorts ports_;
  std::atomic<std::size_t> bodies_{0};  // bytes
  int port_ = 0;
  std::unique_ptr<MHD_Daemon, Stop> daemon_;
};

}  // namespace headroom::kube
