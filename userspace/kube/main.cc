// SPDX-License-Identifier: Apache-2.0
// headroom-kube: see headroom-kube(8).
#include "base/block_signals.h"
#include "base/log/journal.h"
#include "base/thread/wait_for_stop.h"
#include "config/flags/command_line.h"
#include "kube/health_file.h"
#include "kube/kube_config.h"
#include "kube/workers.h"

#include <systemd/sd-daemon.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <exception>
#include <filesystem>
#include <iostream>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace headroom;

constexpr int kCannotRun = 1, kInvalidConfiguration = 2;

constexpr std::string_view kHelp =
    "headroom-kube: headroomd's Kubernetes client: pods from the kubelet, evictions to the API "
    "server\n\n  headroom-kube [OPTION ...]           the client of a node\n  "
    "headroom-kube extender [OPTION ...]  scores nodes for kube-scheduler, over HTTP\n\n"
    "  --config FILE             headroomd's own configuration "
    "(/etc/headroom/headroom.yaml)\n  --config-dir DIR          its drop-ins (FILE.d)\n  "
    "--hostname-override NAME  the node's name\n  --metrics-listen HOST:PORT  serve headroomd's "
    "metrics over HTTPS there\n  "
    "--check-config            report the errors in "
    "the configuration and exit\n  --health                  check that the running headroom-kube "
    "still queries the kubelet, and exit\n  --version, --help\n\nheadroom-kube(8), "
    "headroom.yaml(5)\n";

constexpr std::chrono::seconds kRestartPause{5};

// A worker that throws starts again: the other one goes on.
template <typename Worker>
void run_until_stopped(std::string_view doing, const std::stop_token& stop, Worker&& worker) {
  while (!stop.stop_requested() && !log::log_exceptions(doing, worker))
    wait_for_stop(kRestartPause, stop);
}

std::vector<std::jthread> start_workers(const config::Config& config,
                                        kube::HealthFile& health_file) {
  std::vector<std::jthread> workers;
  if (!config.kubernetes.kubelet.url.empty())
    workers.emplace_back([&](const std::stop_token& stop) {
      run_until_stopped("query the kubelet", stop,
                        [&] { kube::sync_from_kubelet(config, health_file, stop); });
    });
  if (config.kubernetes.api.needs_api())
    workers.emplace_back([&](const std::stop_token& stop) {
      run_until_stopped("report to the API server", stop,
                        [&] { kube::sync_to_api_server(config, health_file, stop); });
    });
  std::error_code ignored;
  if (config.kubernetes.scheduling.needs_api() ||
      std::filesystem::exists(kube::scheduling_state_file(config.kubernetes), ignored))
    workers.emplace_back([&](const std::stop_token& stop) {
      run_until_stopped("advise the scheduler", stop,
                        [&] { kube::sync_scheduling(config, health_file, stop); });
    });
  if (!config.kubernetes.metrics.listen.empty())
    workers.emplace_back([&](const std::stop_token& stop) {
      run_until_stopped("serve metrics", stop,
                        [&] { kube::serve_metrics(config, health_file, stop); });
    });
  return workers;
}

void stop(std::vector<std::jthread>& workers) {
  for (std::jthread& worker : workers)
    worker.request_stop();
  workers.clear();  // waits for them
}

int serve(const config::CommandLine& line, config::Config config, const sigset_t& signals) {
  for (;;) {
    kube::HealthFile health_file(config.kubernetes.status_file());
    std::vector<std::jthread> workers = start_workers(config, health_file);
    if (workers.empty())
      log::info(
          "headroom.kubernetes names no kubelet and no API server, and serves no metrics: nothing "
          "to do");
    sd_notify(0, "READY=1");
    int signal = 0;
    sigwait(&signals, &signal);
    sd_notify(0, signal == SIGHUP ? "RELOADING=1" : "STOPPING=1");
    stop(workers);
    if (signal != SIGHUP) return 0;
    config = kube::reload_config(line, std::move(config));
  }
}

// headroom-kube extender. The signals are waited for beside it.
int serve_extender(const config::CommandLine& line, config::Config config,
                   const sigset_t& signals) {
  for (;;) {
    std::stop_source stop;
    int signal = 0;
    std::thread waiter([&] {
      sigwait(&signals, &signal);
      stop.request_stop();
    });
    const bool served = kube::run_extender(config, stop.get_token());
    if (!served) ::pthread_kill(waiter.native_handle(), SIGTERM);
    waiter.join();
    if (!served) return kCannotRun;
    if (signal != SIGHUP) return 0;
    config = kube::reload_config(line, std::move(config));
  }
}

// For a liveness probe: it only reads the time stamp of one file.
int answer_health(const config::Config& config) {
  const auto health = kube::health(config.kubernetes, std::time(nullptr));
  if (health) return 0;
  std::cerr << "headroom-kube: " << health.error().what << '\n';
  return kCannotRun;
}

// The first argument may be a command.
bool take_command(int& argc, char** argv, const char* command) {
  if (argc < 2 || std::strcmp(argv[1], command) != 0) return false;
  std::copy(argv + 2, argv + argc + 1, argv + 1);  // with the null at its end
  --argc;
  return true;
}

// headroom-kube alone has this option; the others are headroomd's as well.
bool take_health_option(int& argc, char** argv) {
  const auto is_health = [](const char* argument) {
    return std::strcmp(argument, "--health") == 0;
  };
  char** const end = argv + argc;
  char** const kept = std::remove_if(argv + 1, end, is_health);
  const bool found = kept != end;
  argc = static_cast<int>(kept - argv);
  if (found) *kept = nullptr;
  return found;
}

int run(int argc, char** argv) {
  const bool is_extender = take_command(argc, argv, "extender");
  const bool wants_health = take_health_option(argc, argv);
  auto line = config::parse_command_line(argc, argv);
  if (!line) {
    config::print(line.error(), std::cerr);
    return kInvalidConfiguration;
  }
  if (line->help) {
    std::cout << kHelp;
    return 0;
  }
  if (line->version) {
    std::cout << "headroom-kube " << HEADROOM_VERSION << '\n';
    return 0;
  }
  config::LoadResult loaded = kube::load_config(*line);
  if (!loaded.diagnostics.empty()) {
    config::print(loaded.diagnostics, std::cerr);
    return kInvalidConfiguration;
  }
  if (line->check_config) {
    for (const std::string& warning : loaded.warnings)
      std::cerr << warning << '\n';
    std::cout << "the configuration is good\n";
    return 0;
  }
  if (wants_health) return answer_health(loaded.config);
  const sigset_t signals = block_signals();
  const log::Logging logging(loaded.config.log_level);
  for (const std::string& warning : loaded.warnings)
    log::warning("{}", warning);
  return (is_extender ? serve_extender : serve)(*line, std::move(loaded.config), signals);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& thrown) {  // thrown by a library: our code does not throw
    std::cerr << "headroom-kube: " << thrown.what() << '\n';
    return kCannotRun;
  }
}
