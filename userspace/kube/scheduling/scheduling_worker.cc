// SPDX-License-Identifier: Apache-2.0
#include "base/atomic_file.h"
#include "base/clock.h"
#include "base/log/journal.h"
#include "base/thread/wait_for_stop.h"
#include "config/yaml/yaml.h"
#include "kube/api/server_version.h"
#include "kube/kube_config.h"
#include "kube/scheduling/scheduling_sync.h"
#include "kube/workers.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <random>
#include <string>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

namespace headroom::kube {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr Duration kPollPeriod = std::chrono::seconds(1);  // of headroomd
// With batch resources, which are taken back within a second.
constexpr Duration kFastPollPeriod = std::chrono::milliseconds(500);
constexpr Duration kLastTime = std::chrono::seconds(2);  // for the request at the end
constexpr std::size_t kMaxSignalsBytes = std::size_t{64} << 10;

SchedulingOptions options_of(const config::Config& config) {
  const config::SchedulingConfig& scheduling = config.kubernetes.scheduling;
  return {.node_name = node_name_of(config, ::getenv),
          .taints = scheduling.soft_taints,
          .annotation = scheduling.annotation,
          .conditions = scheduling.conditions,
          .batch = scheduling.batch_resources,
          .advice = {.contention = scheduling.contention_threshold,
                     .shortage_within = scheduling.shortage_within}};
}

// The state in its file, which is gone when nothing is left on the Node object.
class SchedulingFile {
 public:
  explicit SchedulingFile(fs::path file) : file_(std::move(file)) {}

  SchedulingState load() {
    const auto text = config::read_file(file_);
    if (!text) {
      if (text.error().code != ENOENT) log::error("read {}: {}", file_.string(), text.error().what);
      return {};
    }
    auto state = scheduling_state_of(*text);
    if (state) return std::move(*state);
    log::error("read {}: {}", file_.string(), state.error().what);
    // What is on the Node object is not known: it may be everything.
    constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
    return {.left = {true, true, true}, .batch = {.memory = {kMost}, .cpu = {kMost}}};
  }

  void save(const SchedulingState& state) {
    std::string text = as_text(state);
    if (text == written_) return;
    const auto done = write_atomically(file_, text, {.durable = true, .make_directory = true});
    if (!done && !failed_) log::error("{}", done.error().what);
    failed_ = !done;
    if (done) written_ = std::move(text);
  }

  void remove() {
    std::error_code ignored;
    fs::remove(file_, ignored);
  }

 private:
  const fs::path file_;
  std::string written_;
  bool failed_ = false;
};

// headroomd's readings; an error is logged when it changes.
class SignalSource {
 public:
  SignalSource(const std::string& listen, const std::stop_token& stop)
      : client_(server_of(listen)), stop_(stop) {}

  std::optional<NodeSignals> read() {
    auto signals = ask();
    const std::string error = signals ? "" : signals.error().what;
    if (error != error_ && !stop_.stop_requested()) {
      if (error.empty())
        log::info("headroomd answers again");
      else
        log::warning("advice for the scheduler: {}", error);
    }
    error_ = error;
    return signals ? std::optional(std::move(*signals)) : std::nullopt;
  }
  const std::string& error() const { return error_; }

 private:
  static config::ServerConfig server_of(const std::string& listen) {
    config::ServerConfig server;
    server.url = "http://" + listen;
    server.timeout = std::chrono::seconds(1);
    return server;
  }

  Result<NodeSignals> ask() {
    const auto response =
        client_.http({.path = "/api/scheduling", .max_body = kMaxSignalsBytes}, stop_);
    if (!response) return tl::make_unexpected(response.error());
    if (!response->good()) return failure("headroomd answers " + std::to_string(response->status));
    return signals_of(response->body, observe::now());
  }

  HttpClient client_;
  const std::stop_token stop_;
  std::string error_;
};

Json state_json(const SchedulingSync& sync) {
  Json advice = Json::object();
  for (std::size_t i = 0; i < kAdvices; ++i) {
    const AdviceState& state = sync.state().advice[i];
    advice[std::string(kAdviceConditionTypes[i])] = state.known ? Json(state.holds) : Json(nullptr);
  }
  return {{"advice", std::move(advice)},
          {"writes",
           {{"taints", sync.writes(SchedulingPart::kTaints)},
            {"annotation", sync.writes(SchedulingPart::kAnnotation)},
            {"status", sync.writes(SchedulingPart::kStatus)}}}};
}

// Logs an error of the API server when it changes; "" after a success.
class ServerErrors {
 public:
  void note(const NodeSyncResult& result) {
    if (!result.any || result.why == error_) return;
    error_ = result.why;
    if (error_.empty())
      log::info("advice for the scheduler: the API server takes it again");
    else
      log::warning("advice for the scheduler: the API server: {}", error_);
  }
  const std::string& last() const { return error_; }

 private:
  std::string error_;
};

}  // namespace

fs::path scheduling_state_file(const config::KubernetesConfig& config) {
  return config.state_dir / "scheduling.json";
}

void sync_scheduling(const config::Config& config, HealthFile& health_file,
                     const std::stop_token& stop) {
  config::ServerConfig server = api_server(config, ::getenv);
  if (server.url.empty()) {
    log::error("the address of the API server is unknown: set headroom.kubernetes.api.url");
    health_file.publish("scheduling", {{"error", "the address of the API server is unknown"}});
    return;
  }
  SchedulingFile file(scheduling_state_file(config.kubernetes));
  SchedulingSync sync(options_of(config), file.load());
  SignalSource source(config.listen, stop);
  VersionCheck version_check(server, stop);
  HttpClient client(server);
  ServerErrors errors;
  std::mt19937_64 dice(std::random_device{}());
  const auto exchange = [&](const HttpRequest& request) { return client.http(request, stop); };
  while (!stop.stop_requested() && !sync.is_finished()) {
    const auto supported = version_check.ask();
    const auto signals = source.read();
    const WallTime time = std::chrono::system_clock::now();
    sync.observe(signals, observe::now(), time);
    file.save(sync.state());
    NodeSyncResult result;
    if (supported)
      result = sync.run_once(observe::now(), time,
                             std::uniform_real_distribution<double>(0, 1)(dice), exchange);
    if (stop.stop_requested()) break;
    errors.note(result);
    file.save(sync.state());
    Json state = state_json(sync);
    if (!supported)
      state["error"] = supported.error().what;
    else if (!errors.last().empty())
      state["error"] = errors.last();
    if (!source.error().empty()) state["headroomdError"] = source.error();
    health_file.publish("scheduling", std::move(state));
    wait_for_stop(config.kubernetes.scheduling.batch_resources ? kFastPollPeriod : kPollPeriod,
                  stop);
  }
  // Without this program nothing would take them back.
  if (const auto request = sync.last_retraction(std::chrono::system_clock::now())) {
    server.timeout = std::min(server.timeout, kLastTime);
    const auto response = http(server, *request);
    if (!response)
      log::warning("take back the batch resources: {}", response.error().what);
    else if (response->good())
      sync.set_retracted();
    file.save(sync.state());
  }
  if (sync.is_finished()) file.remove();
}

}  // namespace headroom::kube
