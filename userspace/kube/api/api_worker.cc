// SPDX-License-Identifier: Apache-2.0
#include "base/log/journal.h"
#include "kube/api/eviction_sync.h"
#include "kube/api/file_waiter.h"
#include "kube/in_cluster.h"
#include "kube/workers.h"

#include <time.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <random>

namespace headroom::kube {
namespace {

Instant boot_time() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return Instant{std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec)};
}

std::int64_t unix_microseconds() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

EvictionSyncOptions node_options_of(const config::Config& config) {
  const config::ApiConfig& api = config.kubernetes.api;
  const std::string node = node_name_of(config, ::getenv);
  return {.pending = {.after = api.after_eviction, .events = api.events, .node_name = node},
          .node = {.node_name = node, .conditions = api.conditions, .taints = api.taints},
          .audit_log = config.audit_log,
          .node_status = config.node_status,
          .state_file = config.kubernetes.state_dir / "pending-evictions.json"};
}

// headroomd is alive if its HTTP server responds; without an HTTP server it counts as alive.
std::function<bool()> make_liveness_check(const std::string& listen, const std::stop_token& stop) {
  if (listen.empty()) return [] { return true; };
  config::ServerConfig page;
  page.url = "http://" + listen;
  page.timeout = std::chrono::seconds(2);
  return [page, stop] {
    return kube::http(page, {.path = "/api/evictions?last=1"}, stop).has_value();
  };
}

EvictionSyncPorts ports_of(const config::Config& config, config::ServerConfig server,
                           const std::stop_token& stop) {
  const auto client = std::make_shared<HttpClient>(std::move(server));
  const auto dice = std::make_shared<std::mt19937_64>(std::random_device{}());
  return {.now = boot_time,
          .unix_time = unix_microseconds,
          .chance = [dice] { return std::uniform_real_distribution<double>(0, 1)(*dice); },
          .exchange = [client,
                       stop](const HttpRequest& request) { return client->http(request, stop); },
          .is_headroomd_alive = make_liveness_check(config.listen, stop),
          .stopping = [stop] { return stop.stop_requested(); }};
}

// Versions up to 0.1 named the file postings.json.
void rename_old_state(const std::filesystem::path& state_file) {
  std::error_code none;
  const auto old_file = state_file.parent_path() / "postings.json";
  if (std::filesystem::exists(old_file, none) && !std::filesystem::exists(state_file, none))
    std::filesystem::rename(old_file, state_file, none);
}

}  // namespace

void sync_to_api_server(const config::Config& config, HealthFile& health_file,
                        const std::stop_token& stop) {
  config::ServerConfig server = api_server(config, ::getenv);
  if (server.url.empty()) {
    log::error("the address of the API server is unknown: set headroom.kubernetes.api.url");
    health_file.publish("api", {{"error", "the address of the API server is unknown"}});
    return;
  }
  log::info("reporting to the API server at {}", server.url);
  const std::string url = server.url;
  const EvictionSyncOptions options = node_options_of(config);
  rename_old_state(options.state_file);
  EvictionSync eviction_sync(options, ports_of(config, std::move(server), stop));
  FileWaiter file_waiter(stop);
  while (!stop.stop_requested()) {
    // Watched before reading: a later change wakes the wait below.
    file_waiter.watch(options.audit_log);
    file_waiter.watch(options.node_status);
    const Duration idle = eviction_sync.run_once();
    nlohmann::ordered_json state{{"server", url}};
    state.update(eviction_sync.state());
    health_file.publish("api", std::move(state));
    file_waiter.wait(idle);
  }
}

}  // namespace headroom::kube
