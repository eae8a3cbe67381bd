// SPDX-License-Identifier: Apache-2.0
#include "daemon/loop.h"

#include "base/clock.h"
#include "base/log/journal.h"
#include "config/load/effective_settings.h"
#include "config/load/load.h"
#include "daemon/sources/node_sources.h"
#include "daemon/startup.h"

#include <malloc.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>

#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include <spdlog/fmt/fmt.h>

namespace headroom::daemon {
namespace {

using report::WakeSource;

Result<> checked(int result, const char* doing) {
  if (result < 0) return errno_failure(doing, -result);
  return {};
}

Result<sd_event_source*> add_io(sd_event* event, int descriptor, std::uint32_t ready,
                                sd_event_io_handler_t handler, void* loop, const char* name) {
  sd_event_source* source = nullptr;
  const int result = sd_event_add_io(event, &source, descriptor, ready, handler, loop);
  if (result < 0) return errno_failure(std::string("watch for ") + name, -result);
  sd_event_source_set_description(source, name);
  return source;
}

// A cgroup that was removed and created again is found by polling.
constexpr std::chrono::seconds kPressureRetryPeriod{10};

constexpr std::chrono::seconds kRetryPeriod{1};  // after a turn that threw

// Ends the loop after an error without which it cannot run.
void exit_loop(sd_event* event, const Result<>& why) {
  log::error("{}", why.error().what);
  sd_event_exit(event, 1);
}

}  // namespace

Result<std::unique_ptr<Loop>> Loop::open(App& app, config::CommandLine line,
                                         observe::ManifestCache manifest_cache,
                                         std::string configz) {
  auto load = [line = std::move(line),
               run_dir = app.config().kubernetes.run_dir](const Amounts& capacity) {
    return load_config(
        line, LoadReason::kReload, [&](const config::Config&) { return capacity; }, run_dir);
  };
  auto files = FileReader::start(load, std::move(manifest_cache), std::move(configz));
  if (!files) return tl::make_unexpected(files.error());
  std::unique_ptr<Loop> loop(new Loop(app, std::move(*files)));
  if (auto attached = loop->attach(); !attached) return tl::make_unexpected(attached.error());
  return loop;
}

Result<> Loop::attach() {
  auto made = make_event();
  if (!made) return tl::make_unexpected(made.error());
  event_ = std::move(*made);
  sd_event* const event = event_.get();
  // A null callback on a signal ends the loop.
  for (const int signal : {SIGTERM, SIGINT})
    if (auto added = checked(sd_event_add_signal(event, nullptr, signal, nullptr, nullptr),
                             "handle SIGTERM");
        !added)
      return added;
  if (auto added =
          checked(sd_event_add_signal(event, nullptr, SIGHUP, &on_hangup, this), "handle SIGHUP");
      !added)
    return added;
  // At the lowest priority: what was read must not delay a turn that is due.
  auto files = add_io(event, files_->descriptor(), EPOLLIN, &on_files, this, "files");
  if (!files) return tl::make_unexpected(files.error());
  sd_event_source_set_priority(*files, SD_EVENT_PRIORITY_IDLE);
  files_read_.reset(*files);
  // A null source is owned by the event loop.
  if (auto added = checked(sd_event_add_io(event, nullptr, app_->taints_edited_fd(), EPOLLIN,
                                           &on_taints_edited, this),
                           "watch for edits of the taints");
      !added)
    return added;
  sd_event_source* timer = nullptr;
  // An accuracy of one microsecond: the default is 250 ms.
  if (auto added = checked(sd_event_add_time(event, &timer, CLOCK_BOOTTIME, 0, 1, &on_timer, this),
                           "add the timer");
      !added)
    return added;
  timers_.turn.reset(timer);
  sd_event_source_set_description(timer, "turn");
  if (auto added = add_idle_timers(); !added) return added;
  watch_files();
  watch_pressure();
  return watch_events();
}

// Adds one PSI trigger for the node and one for all pods together, which may reach their own limit;
// each costs a kernel thread. A trigger only makes the next check earlier; without it the check is
// on time as well.
void Loop::watch_pressure() {
  for (const std::filesystem::path& file :
       {std::filesystem::path("/proc/pressure/memory"), app_->pods_cgroup() / "memory.pressure"}) {
    pressures_.push_back(std::make_unique<PressureWatch>(event_.get(), file,
                                                         [this] { turn(WakeSource::kPressure); }));
    if (auto watched = pressures_.back()->start(); !watched)
      log::info("{}: the next check finds out", watched.error().what);
  }
  arm_timer(timers_.pressure_retry, kPressureRetryPeriod);
}

Result<> Loop::watch_events() {
  if (const int guard = app_->guard_descriptor(); guard >= 0) {
    auto source = add_io(event_.get(), guard, EPOLLIN, &on_guard, this, "the guard");
    if (!source) return tl::make_unexpected(source.error());
    guard_.reset(*source);
  }
  const int descriptor = app_->events_descriptor();
  if (descriptor < 0) return {};
  auto source = add_io(event_.get(), descriptor, EPOLLIN, &on_events, this, "events");
  if (!source) return tl::make_unexpected(source.error());
  events_.reset(*source);
  return {};
}

Result<> Loop::add_idle_timers() {
  struct Wanted {
    EventSource* source;
    sd_event_time_handler_t handler;
    const char* name;
  };
  for (const Wanted& wanted :
       {Wanted{&timers_.pressure_retry, &on_pressure_retry, "pressure retry"},
        Wanted{&timers_.heartbeat, &on_heartbeat_timer, "heartbeat"}}) {
    auto timer = add_idle_timer(event_.get(), wanted.handler, this, wanted.name);
    if (!timer) return tl::make_unexpected(timer.error());
    *wanted.source = std::move(*timer);
  }
  return {};
}

void Loop::watch_files() {
  const config::Config& config = app_->config();
  const auto& kubernetes = config.kubernetes;
  files_->watch({.manifests = manifest_sources(config),
                 .run_dir = kubernetes.run_dir,
                 .configz = kubernetes.kubelet.configz ? kubernetes.configz_file()
                                                       : std::filesystem::path()});
}

Result<> Loop::run() {
  turn(WakeSource::kTimer);
  app_->heartbeat().set_ready();
  beat();
  // Not earlier: the first turn reads everything, and until READY=1 systemd applies the start
  // timeout.
  if (auto set = checked(sd_event_set_watchdog(event_.get(), true), "arm the watchdog"); !set)
    return set;
  sd_notify(0, "READY=1");
  // The start read the kernel's types once for each BPF object: megabytes that are not needed
  // again.
  ::malloc_trim(0);
  const int result = sd_event_loop(event_.get());
  sd_notify(0, "STOPPING=1");
  if (result < 0) return errno_failure("run the event loop", -result);
  if (result > 0) return failure("the event loop ended");
  return {};
}

void Loop::turn(WakeSource wake) {
  Instant next = observe::now() + kRetryPeriod;  // if the turn throws
  const bool may_go_on = failed_turns_.run([&] {
    next = app_->turn(wake);
    app_->heartbeat().beat();
  });
  if (!may_go_on)
    return exit_loop(event_.get(), failure(fmt::format("{} turns in a row failed: headroomd ends",
                                                       FailedTurns::kLimit)));
  if (auto set = wake_at(next); !set) exit_loop(event_.get(), set);
}

Result<> Loop::wake_at(Instant next) {
  next_ = next;
  if (auto set = checked(sd_event_source_set_time(timers_.turn.get(), usec(next)), "set the timer");
      !set)
    return set;
  // Fires once and is then disabled.
  return checked(sd_event_source_set_enabled(timers_.turn.get(), SD_EVENT_ONESHOT),
                 "enable the timer");
}

// Another thread reads the files: use_files() goes on when it has.
void Loop::request_reload() {
  app_->reload_status().set_successful(false);  // stays so if the files cannot be read
  files_->request_reload(app_->capacity());
}

void Loop::use_files() {
  FileReader::News news = files_->take();
  if (news.configz_changed) request_reload();
  const bool reloaded = news.config && reload(std::move(*news.config));
  if (news.manifests) app_->set_declared_pods(std::move(*news.manifests));
  if (reloaded) turn(WakeSource::kRequest);
}

bool Loop::reload(config::LoadResult loaded) {
  if (!loaded.diagnostics.empty()) {
    for (const config::Diagnostic& diagnostic : loaded.diagnostics)
      log::error("{}", to_string(diagnostic));
    log::error("the configuration is not reloaded: the one in force stays");
    return false;
  }
  for (const std::string& warning : loaded.warnings)
    log::warning("{}", warning);
  for (const std::string& warning : config::kubelet_conflict_warnings(loaded.config))
    log::warning("{}", warning);
  app_->reconfigure(std::move(loaded.config));
  watch_files();
  app_->reload_status().set_successful(true);
  log::info("reloaded");
  return true;
}

// Also called between turns: the time between two turns may be longer than health checks allow.
void Loop::beat() {
  app_->heartbeat().beat();
  arm_timer(timers_.heartbeat, report::Heartbeat::kPeriod);
}

int Loop::on_heartbeat_timer(sd_event_source*, uint64_t, void* loop) {
  static_cast<Loop*>(loop)->beat();
  return 0;
}

int Loop::on_timer(sd_event_source*, uint64_t, void* data) {
  auto* loop = static_cast<Loop*>(data);
  const auto later = loop->app_->put_off_turn(observe::now());
  if (!later)
    loop->turn(WakeSource::kTimer);
  else if (auto set = loop->wake_at(*later); !set)
    exit_loop(loop->event_.get(), set);
  return 0;
}

int Loop::on_hangup(sd_event_source*, const signalfd_siginfo*, void* loop) {
  log::log_exceptions("reload", [&] { static_cast<Loop*>(loop)->request_reload(); });
  return 0;
}

int Loop::on_taints_edited(sd_event_source*, int, uint32_t, void* loop) {
  log::log_exceptions("edit taints", [&] { static_cast<Loop*>(loop)->app_->apply_taint_edits(); });
  static_cast<Loop*>(loop)->turn(WakeSource::kRequest);
  return 0;
}

int Loop::on_guard(sd_event_source*, int, uint32_t, void* data) {
  auto* loop = static_cast<Loop*>(data);
  log::log_exceptions("read the guard", [&] { loop->app_->drain_guard(); });
  loop->turn(WakeSource::kGuard);
  return 0;
}

int Loop::on_events(sd_event_source*, int, uint32_t, void* data) {
  auto* loop = static_cast<Loop*>(data);
  std::optional<Instant> due;
  log::log_exceptions("read events", [&] { due = loop->app_->read_events(); });
  if (!due || *due >= loop->next_) return 0;
  if (*due <= observe::now())
    loop->turn(WakeSource::kLifecycle);
  else if (auto set = loop->wake_at(*due); !set)
    exit_loop(loop->event_.get(), set);
  return 0;
}

int Loop::on_files(sd_event_source*, int, uint32_t, void* loop) {
  log::log_exceptions("use what was read", [&] { static_cast<Loop*>(loop)->use_files(); });
  return 0;
}

int Loop::on_pressure_retry(sd_event_source*, uint64_t, void* loop) {
  log::log_exceptions("watch the pressure", [&] { static_cast<Loop*>(loop)->retry_pressure(); });
  return 0;
}

void Loop::retry_pressure() {
  for (const auto& pressure : pressures_)
    static_cast<void>(pressure->start());  // the error was logged at the start
  arm_timer(timers_.pressure_retry, kPressureRetryPeriod);
}

}  // namespace headroom::daemon
