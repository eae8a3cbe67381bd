// SPDX-License-Identifier: Apache-2.0
#include "report/dbus/dbus_thread.h"

#include "base/file_io.h"
#include "base/log/journal.h"
#include "base/process_stat.h"

#include <poll.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <utility>

namespace headroom::report {
namespace {

struct EventUnref {
  void operator()(sd_event* event) const { sd_event_unref(event); }
};
using Event = std::unique_ptr<sd_event, EventUnref>;

// Only ends the wait for events; serve() then checks what to do.
int on_wakeup(sd_event_source*, int fd, std::uint32_t, void*) {
  clear_event_fd(fd);
  return 0;
}

Result<Event> event_with(int wake) {
  sd_event* made = nullptr;
  if (int r = sd_event_new(&made); r < 0) return errno_failure("make an event loop", -r);
  Event event(made);
  if (int r = sd_event_add_io(made, nullptr, wake, POLLIN, on_wakeup, nullptr); r < 0)
    return errno_failure("watch the wake-up of the D-Bus thread", -r);
  return event;
}

}  // namespace

Result<std::unique_ptr<DbusThread>> DbusThread::start(DbusSetup setup,
                                                      std::chrono::milliseconds retry) {
  Fd wake = open_event_fd();
  if (!wake) return errno_failure("make an eventfd for the D-Bus thread", errno);
  return std::unique_ptr<DbusThread>(new DbusThread(std::move(setup), std::move(wake), retry));
}

DbusThread::DbusThread(DbusSetup setup, Fd wake, std::chrono::milliseconds retry)
    : setup_(std::move(setup)), wake_(std::move(wake)), retry_(retry) {
  queue_.reserve(kQueueSize);
  thread_ = std::thread([this] { run(); });
}

DbusThread::~DbusThread() {
  stop_ = true;
  wake();
  thread_.join();
}

void DbusThread::wake() const {
  signal_event_fd(wake_.get());
}

void DbusThread::evicted(const Eviction& eviction) {
  EvictedSignal signal = evicted_signal_of(eviction);
  {
    const std::lock_guard lock(mutex_);
    if (!connected_ || queue_.size() == kQueueSize) {
      ++lost_;
      return;
    }
    queue_.push_back(std::move(signal));
  }
  wake();
}

void DbusThread::run() {
  set_thread_name("dbus");
  while (!stop_) {
    Result<> served = failure("");
    try {
      served = serve();
    } catch (const std::exception& e) {
      served = failure(e.what());
    }
    connected_ = false;
    log_failure(served);
    if (stop_) return;
    pollfd sleep{.fd = wake_.get(), .events = POLLIN, .revents = 0};
    ::poll(&sleep, 1, static_cast<int>(retry_.count()));
    clear_event_fd(wake_.get());
  }
}

// Serves the bus until the thread is stopped or the bus disconnects.
Result<> DbusThread::serve() {
  auto event = event_with(wake_.get());
  if (!event) return tl::make_unexpected(std::move(event.error()));
  auto service = DbusService::open(event->get(), setup_);
  if (!service) return tl::make_unexpected(std::move(service.error()));
  connected_ = true;
  failure_logged_ = false;
  while (!stop_ && (*service)->connected()) {
    emit_queued(**service);
    // The condition of the loop detects a bus that disconnected.
    if (auto emitted = (*service)->emit_properties_changed(); !emitted)
      log::debug("{}", emitted.error().what);
    if (int r = sd_event_run(event->get(), UINT64_MAX); r < 0)
      return errno_failure("run the D-Bus event loop", -r);
  }
  if (stop_) return {};
  return failure("the system bus closed the connection");
}

void DbusThread::emit_queued(DbusService& service) {
  std::vector<EvictedSignal> signals;
  signals.reserve(kQueueSize);
  {
    const std::lock_guard lock(mutex_);
    std::swap(signals, queue_);
  }
  for (const EvictedSignal& signal : signals)
    if (!service.evicted(signal)) ++lost_;
}

void DbusThread::log_failure(const Result<>& result) {
  if (result || failure_logged_) return;
  failure_logged_ = true;
  log::warning("D-Bus: {}; headroomctl cannot reach this daemon; trying again every {} s",
               result.error().what, retry_.count() / 1000);
}

}  // namespace headroom::report
