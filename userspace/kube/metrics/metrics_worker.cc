// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/log/journal.h"
#include "base/thread/wait_for_stop.h"
#include "kube/kube_config.h"
#include "kube/metrics/metrics_server.h"
#include "kube/workers.h"

#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace headroom::kube {
namespace {

constexpr Duration kCheckPeriod = std::chrono::seconds(10);     // of the files, and after an error
constexpr Duration kRenewAfter = std::chrono::hours(24 * 180);  // a self-signed one is for a year

// The certificate to serve with now: the files are replaced when they are rotated.
class CertificateSource {
 public:
  CertificateSource(config::MetricsServerConfig config, std::string host_name)
      : config_(std::move(config)), host_name_(std::move(host_name)) {}

  Result<ServerCertificate> current() {
    if (!config_.cert_file.empty()) return read_certificate(config_.cert_file, config_.key_file);
    if (made_ && observe::now() < made_at_ + kRenewAfter) return *made_;
    auto made = make_self_signed(host_name_);
    if (!made) return made;
    made_ = *made;
    made_at_ = observe::now();
    return made;
  }

  std::string name() const {
    return config_.cert_file.empty() ? "self-signed" : config_.cert_file.string();
  }

 private:
  const config::MetricsServerConfig config_;
  const std::string host_name_;
  std::optional<ServerCertificate> made_;
  Instant made_at_{};
};

MetricsServerPorts ports_of(const config::Config& config, config::ServerConfig api,
                            const std::stop_token& stop) {
  config::ServerConfig headroomd;
  headroomd.url = "http://" + config.listen;
  const auto client = std::make_shared<HttpClient>(std::move(api));
  const auto access = std::make_shared<AccessCheck>(
      [client, stop](const HttpRequest& request) { return client->http(request, stop); },
      observe::now);
  return {.check_access = [access](const std::string& token,
                                   const std::string& path) { return access->check(token, path); },
          .fetch = [headroomd,
                    stop](const HttpRequest& request) { return http(headroomd, request, stop); }};
}

// What is logged and published of the server; an error is logged when it changes.
class ServerState {
 public:
  ServerState(HealthFile& health_file, std::string listen, std::string certificate)
      : health_file_(health_file),
        listen_(std::move(listen)),
        certificate_(std::move(certificate)) {}

  void publish(const std::string& error) {
    if (error_ == error) return;
    error_ = error;
    if (error.empty())
      log::info("serving metrics at https://{}/metrics", listen_);
    else
      log::error("{}", error);
    nlohmann::ordered_json state{{"listen", listen_}, {"certificate", certificate_}};
    if (!error.empty()) state["error"] = error;
    health_file_.publish("metrics", std::move(state));
  }

 private:
  HealthFile& health_file_;
  const std::string listen_, certificate_;
  std::optional<std::string> error_;
};

}  // namespace

void serve_metrics(const config::Config& config, HealthFile& health_file,
                   const std::stop_token& stop) {
  const config::MetricsServerConfig& metrics = config.kubernetes.metrics;
  CertificateSource source(metrics, node_name_of(config, ::getenv));
  ServerState state(health_file, metrics.listen, source.name());
  config::ServerConfig api = api_server(config, ::getenv);
  if (api.url.empty())
    return state.publish(
        "the address of the API server is unknown: set headroom.kubernetes.api.url");
  const MetricsServerPorts ports = ports_of(config, std::move(api), stop);
  std::optional<ServerCertificate> used;
  std::unique_ptr<MetricsServer> server;
  while (!stop.stop_requested()) {
    auto certificate = source.current();
    if (!certificate) {
      state.publish(certificate.error().what);  // an older certificate stays in use
    } else if (!server || *certificate != *used) {
      server.reset();
      auto opened = MetricsServer::open(metrics.listen, *certificate, ports);
      used = std::move(*certificate);
      if (opened) server = std::move(*opened);
      state.publish(opened ? "" : opened.error().what);
    } else {
      state.publish("");
    }
    wait_for_stop(kCheckPeriod, stop);
  }
}

}  // namespace headroom::kube
