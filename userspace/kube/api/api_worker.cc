// SPDX-License-Identifier: Apache-2.0
#include "base/file_io.h"
#include "base/log/journal.h"
#include "kube/api/api_response.h"
#include "kube/api/eviction_sync.h"
#include "kube/api/server_version.h"
#include "kube/kube_config.h"
#include "kube/workers.h"

#include <headroom/units.h>

#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <stop_token>

namespace headroom::kube {
namespace {

// FileWaiter: waits until a watched directory changes, a time is reached, or a stop is requested.

// Watches may fail (the directory is missing, or no inotify watch is left): the caller then polls
// with this period.
inline constexpr Duration kPollPeriod = std::chrono::seconds(1);

class FileWaiter {
 public:
  explicit FileWaiter(const std::stop_token& stop);

  // Watches the directory of this file, because the file may be renamed, created again or appended
  // to. Call it again until the watch works.
  void watch(const std::filesystem::path& file);

  // Waits at most `longest`, and at most kPollPeriod if a directory is not watched.
  void wait(Duration longest);

 private:
  void drain();

  Fd events_, ended_;
  std::map<std::filesystem::path, int> watches_;  // directory → watch descriptor, or -1
  std::stop_callback<std::function<void()>> on_stop_;
};

FileWaiter::FileWaiter(const std::stop_token& stop)
    : events_(open_inotify()),
      ended_(open_event_fd()),
      on_stop_(stop, [this] { signal_event_fd(ended_.get()); }) {}

void FileWaiter::watch(const std::filesystem::path& file) {
  const auto directory = file.parent_path();
  const auto known = watches_.find(directory);
  if (known != watches_.end() && known->second >= 0) return;
  constexpr std::uint32_t kChanges =
      IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
  watches_[directory] = ::inotify_add_watch(events_.get(), directory.c_str(), kChanges);
}

void FileWaiter::wait(Duration longest) {
  const bool poll_needed = std::any_of(watches_.begin(), watches_.end(),
                                       [](const auto& watch) { return watch.second < 0; });
  if (poll_needed) longest = std::min(longest, kPollPeriod);
  const auto whole = std::chrono::ceil<std::chrono::milliseconds>(longest).count();
  std::array<pollfd, 2> waited{pollfd{events_.get(), POLLIN, 0}, pollfd{ended_.get(), POLLIN, 0}};
  const int timeout = static_cast<int>(std::clamp<std::int64_t>(whole, 0, 60'000));
  if (::poll(waited.data(), waited.size(), timeout) > 0 && waited[0].revents) drain();
}

// Marks the watches of removed or renamed directories as lost, so that watch() adds them again.
void FileWaiter::drain() {
  read_inotify(events_, [this](const InotifyEvent& event) {
    if (!(event.mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED))) return;
    for (auto& [directory, watch] : watches_)
      if (watch == event.watch) watch = -1;
  });
}

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
          .node = {.node_name = node,
                   .conditions = api.conditions,
                   .taints = api.taints,
                   .events = api.events},
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
  VersionCheck version_check(server, stop);
  EvictionSync eviction_sync(options, ports_of(config, std::move(server), stop));
  FileWaiter file_waiter(stop);
  bool too_old_logged = false;
  while (!stop.stop_requested()) {
    if (const auto supported = version_check.ask(); !supported) {
      if (!too_old_logged) log::error("{}: nothing is reported", supported.error().what);
      too_old_logged = true;
      health_file.publish("api", {{"server", url}, {"error", supported.error().what}});
      file_waiter.wait(kRefusedRetryWait);
      continue;
    }
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
