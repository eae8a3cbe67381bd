// SPDX-License-Identifier: Apache-2.0
// MetricsServer: headroomd's metrics over HTTPS, for clients that the API server allows them.
//
// headroomd itself serves on the loopback only and knows no TLS. Each connection has a thread of
// its own, because an answer waits for the API server and for headroomd.
#pragma once

#include "base/file_io.h"
#include "kube/http_client.h"
#include "kube/metrics/access_check.h"
#include "kube/metrics/server_certificate.h"

#include <headroom/result.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <semaphore>
#include <string>
#include <string_view>

struct MHD_Connection;
struct MHD_Daemon;

namespace headroom::kube {

struct MetricsServerPorts {
  std::function<Result<Access>(const std::string& token, const std::string& path)> check_access;
  std::function<Result<HttpResponse>(const HttpRequest&)> fetch;  // from headroomd
};

class MetricsServer {
 public:
  static constexpr unsigned kMaxConnections = 16;
  static constexpr unsigned kIdleSeconds = 10;
  static constexpr int kMaxAnswers = 2;                                  // in memory at a time
  static constexpr std::size_t kMaxAnswerBytes = std::size_t{16} << 20;  // of one

  // `address` as headroom.listen; not "".
  static Result<std::unique_ptr<MetricsServer>> open(const std::string& address,
                                                     const ServerCertificate& certificate,
                                                     MetricsServerPorts ports);
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  int port() const { return port_; }

 private:
  struct Requests;
  struct Stop {
    void operator()(MHD_Daemon* daemon) const;
  };
  explicit MetricsServer(MetricsServerPorts ports) : ports_(std::move(ports)) {}

  const MetricsServerPorts ports_;
  std::counting_semaphore<kMaxAnswers> free_answers_{kMaxAnswers};
  int port_ = 0;
  std::unique_ptr<MHD_Daemon, Stop> daemon_;
};

// The token of "Bearer TOKEN"; empty: there is none.
std::string bearer_token(std::string_view authorization);

}  // namespace headroom::kube
