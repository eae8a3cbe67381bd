// SPDX-License-Identifier: Apache-2.0
#include "daemon/loop.h"

#include "config/load.h"
#include "daemon/slice_terms.h"
#include "observe/clock.h"
#include "observe/manifest.h"
#include "observe/pressure_trigger.h"
#include "report/journal.h"

#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>

#include <csignal>
#include <filesystem>
#include <string>

namespace headroom::daemon {
namespace {

using report::Wake;

std::uint64_t usec(Instant at) {
  const auto since = at.time_since_epoch();
  // Rounded up: a turn a moment early would find its deadline not yet reached.
  return static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::microseconds>(since).count());
}

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

// What stops the loop from turning at all is no reason to go on.
void give_up(sd_event* event, const Result<>& why) {
  log::error("{}", why.error().what);
  sd_event_exit(event, 1);
}

}  // namespace

void block_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP})
    sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

Result<std::unique_ptr<Loop>> Loop::open(Node& node, config::CommandLine line) {
  std::unique_ptr<Loop> loop(new Loop(node, std::move(line)));
  if (auto attached = loop->attach(); !attached) return tl::make_unexpected(attached.error());
  return loop;
}

Result<> Loop::attach() {
  sd_event* event = nullptr;
  if (auto made = checked(sd_event_new(&event), "create the event loop"); !made) return made;
  event_.reset(event);
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
  // A null source is the loop's own, and as old.
  if (auto added =
          checked(sd_event_add_io(event, nullptr, node_->edits_fd(), EPOLLIN, &on_edits, this),
                  "watch for edits of the taints");
      !added)
    return added;
  sd_event_source* timer = nullptr;
  // An accuracy of one microsecond: the default of 250 ms is for timers that do not mind.
  if (auto added = checked(sd_event_add_time(event, &timer, CLOCK_BOOTTIME, 0, 1, &on_timer, this),
                           "add the timer");
      !added)
    return added;
  timer_.reset(timer);
  sd_event_source_set_description(timer, "turn");
  if (auto set = checked(sd_event_set_watchdog(event, true), "arm the watchdog"); !set) return set;
  if (auto watched = watch_manifests(); !watched)
    log::warning("{}: manifests are read again on SIGHUP only", watched.error().what);
  if (auto watched = watch_pressure(); !watched)
    log::info("{}: the next check finds out", watched.error().what);
  return watch_events();
}

// It only brings a look forward: the watch is on time without.
Result<> Loop::watch_pressure() {
  auto trigger = observe::watch_pressure("/proc/pressure/memory");
  if (!trigger) return tl::make_unexpected(trigger.error());
  auto source = add_io(event_.get(), trigger->get(), EPOLLPRI, &on_pressure, this, "pressure");
  if (!source) return tl::make_unexpected(source.error());
  pressure_source_.reset(*source);
  pressure_ = std::move(*trigger);
  return {};
}

Result<> Loop::watch_events() {
  const int descriptor = node_->events_descriptor();
  if (descriptor < 0) return {};
  auto source = add_io(event_.get(), descriptor, EPOLLIN, &on_events, this, "events");
  if (!source) return tl::make_unexpected(source.error());
  events_.reset(*source);
  return {};
}

Result<> Loop::watch_manifests() {
  manifests_.reset();
  const auto& directory = node_->config().pod_manifests;
  std::error_code ignored;
  std::filesystem::create_directories(directory, ignored);  // else adding the watch says why
  sd_event_source* source = nullptr;
  const int result = sd_event_add_inotify(event_.get(), &source, directory.c_str(),
                                          IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE,
                                          &on_manifests, this);
  if (result < 0) return errno_failure("watch " + directory.native(), -result);
  manifests_.reset(source);
  // After the timer: a flood of manifests must not hold up a turn that is due.
  sd_event_source_set_priority(source, SD_EVENT_PRIORITY_IDLE);
  return {};
}

Result<> Loop::run() {
  turn(Wake::kTimer);
  sd_notify(0, "READY=1");
  const int result = sd_event_loop(event_.get());
  sd_notify(0, "STOPPING=1");
  if (result < 0) return errno_failure("run the event loop", -result);
  if (result > 0) return failure("the event loop ended");
  return {};
}

void Loop::turn(Wake wake) {
  if (auto set = wake_at(node_->turn(wake)); !set) give_up(event_.get(), set);
}

Result<> Loop::wake_at(Instant next) {
  next_ = next;
  if (auto set = checked(sd_event_source_set_time(timer_.get(), usec(next)), "set the timer"); !set)
    return set;
  // Fires once and is then off by itself.
  return checked(sd_event_source_set_enabled(timer_.get(), SD_EVENT_ONESHOT), "enable the timer");
}

void Loop::reload() {
  config::Heard fresh = config::read(line_);
  if (fresh.complaints.empty())
    fresh.complaints = objections_to_reserves(fresh.config, node_->capacity());
  if (fresh.complaints.empty()) fresh.complaints = cpu_objections(fresh.config);
  if (!fresh.complaints.empty()) {
    for (const config::Complaint& complaint : fresh.complaints)
      log::error("{}", to_string(complaint));
    log::error("the configuration is not reloaded: the one in force stays");
    return;
  }
  node_->adopt(std::move(fresh.config));
  if (auto watched = watch_manifests(); !watched) log::warning("{}", watched.error().what);
  read_manifests();
  log::info("reloaded");
}

void Loop::read_manifests() {
  observe::Manifests manifests = observe::read_manifests(node_->config().pod_manifests);
  for (const config::Complaint& complaint : manifests.complaints)
    log::error("{}", to_string(complaint));
  node_->describe(std::move(manifests.pods));
}

int Loop::on_timer(sd_event_source*, uint64_t, void* loop) {
  static_cast<Loop*>(loop)->turn(Wake::kTimer);
  return 0;
}

int Loop::on_hangup(sd_event_source*, const signalfd_siginfo*, void* loop) {
  static_cast<Loop*>(loop)->reload();
  static_cast<Loop*>(loop)->turn(Wake::kRequest);
  return 0;
}

int Loop::on_edits(sd_event_source*, int, uint32_t, void* loop) {
  static_cast<Loop*>(loop)->node_->heed_edits();
  static_cast<Loop*>(loop)->turn(Wake::kRequest);
  return 0;
}

int Loop::on_events(sd_event_source*, int, uint32_t, void* data) {
  auto* loop = static_cast<Loop*>(data);
  const auto due = loop->node_->take_events();
  if (!due || *due >= loop->next_) return 0;
  if (*due <= observe::now())
    loop->turn(Wake::kLifecycle);
  else if (auto set = loop->wake_at(*due); !set)
    give_up(loop->event_.get(), set);
  return 0;
}

int Loop::on_pressure(sd_event_source*, int, uint32_t, void* loop) {
  static_cast<Loop*>(loop)->turn(Wake::kPressure);
  return 0;
}

int Loop::on_manifests(sd_event_source*, const inotify_event*, void* loop) {
  static_cast<Loop*>(loop)->read_manifests();
  return 0;
}

}  // namespace headroom::daemon
