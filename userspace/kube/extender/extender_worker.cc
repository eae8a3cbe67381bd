// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/log/journal.h"
#include "base/thread/wait_for_stop.h"
#include "kube/api/api_response.h"
#include "kube/extender/extender_server.h"
#include "kube/extender/node_watch.h"
#include "kube/kube_config.h"
#include "kube/workers.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>

namespace headroom::kube {
namespace {

constexpr Duration kCheckPeriod = std::chrono::seconds(10);  // of the certificate's files
constexpr std::chrono::seconds kSpareTime{10};
constexpr Duration kShortestStep = std::chrono::seconds(1);  // of a watch

// Lists and watches until stopped; an error is logged when it changes.
void follow_nodes(config::ServerConfig server, NodeTable& table, std::atomic<bool>& ready,
                  const std::stop_token& stop) {
  // The server ends a watch; this is for one that is gone without a word.
  server.timeout = std::max<Duration>(server.timeout, NodeWatch::kWatchTime + kSpareTime);
  HttpClient client(std::move(server));
  NodeWatch watch(table, [&](const HttpRequest& request) { return client.http(request, stop); });
  std::mt19937_64 dice(std::random_device{}());
  std::string error;
  unsigned failures = 0;
  while (!stop.stop_requested()) {
    const Instant began = observe::now();
    const auto done = watch.step();
    if (stop.stop_requested()) return;
    ready = watch.has_listed();
    const std::string now = done ? "" : done.error().what;
    if (now != error) {
      if (now.empty())
        log::info("extender: the API server answers again");
      else
        log::warning("extender: {}", now);
    }
    error = now;
    failures = done ? 0 : failures + 1;
    if (!done)
      wait_for_stop(wait_after(failures, std::uniform_real_distribution<double>(0, 1)(dice)), stop);
    else if (observe::now() - began < kShortestStep)
      wait_for_stop(kShortestStep, stop);  // a server that ends each watch at once
  }
}

using Opened = Result<std::unique_ptr<ExtenderServer>>;

// The certificate of the files, if there are any.
Result<std::optional<ServerCertificate>> certificate_of(const config::ExtenderConfig& config) {
  if (config.cert_file.empty()) return std::optional<ServerCertificate>();
  auto certificate = read_certificate(config.cert_file, config.key_file);
  if (!certificate) return tl::make_unexpected(certificate.error());
  return std::optional(std::move(*certificate));
}

}  // namespace

bool run_extender(const config::Config& config, const std::stop_token& stop) {
  const config::ExtenderConfig& extender = config.kubernetes.extender;
  config::ServerConfig api = api_server(config, ::getenv);
  if (api.url.empty())
    log::warning(
        "extender: the address of the API server is unknown: nodes are scored by what the "
        "scheduler sends of them");
  NodeTable table;
  std::atomic<bool> ready{api.url.empty()};
  std::jthread follower;
  if (!api.url.empty())
    follower = std::jthread([&](const std::stop_token& end) {
      while (
          !log::log_exceptions("follow the nodes", [&] { follow_nodes(api, table, ready, end); }))
        wait_for_stop(kCheckPeriod, end);
    });
  const ExtenderPorts ports{
      .find = [&table](const std::string& node, const UseSummary& use) { table.find(node, use); },
      .now = [] { return std::chrono::system_clock::now(); },
      .is_ready = [&ready] { return ready.load(); }};
  std::optional<ServerCertificate> used;
  std::unique_ptr<ExtenderServer> server;
  while (!stop.stop_requested()) {
    auto certificate = certificate_of(extender);
    if (!certificate) {
      log::error("extender: {}", certificate.error().what);  // an older one stays in use
      if (!server) return false;
    } else if (!server || *certificate != used) {
      server.reset();
      used = std::move(*certificate);
      auto opened = ExtenderServer::open(extender.listen, used, ports);
      if (!opened) {
        log::error("extender: {}", opened.error().what);
        return false;
      }
      server = std::move(*opened);
      log::info("serving the scheduler on {}", extender.listen);
    }
    wait_for_stop(kCheckPeriod, stop);
  }
  return true;
}

}  // namespace headroom::kube
