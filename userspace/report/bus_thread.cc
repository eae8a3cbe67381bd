// SPDX-License-Identifier: Apache-2.0
#include "report/bus_thread.h"

#include "report/journal.h"
#include "report/self_threads.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <utility>

namespace headroom::report {
namespace {

// How late a property's change is told, at most: nobody wakes this thread for one.
constexpr std::uint64_t kLookUsec = 1'000'000;

struct EventUnref {
  void operator()(sd_event* event) const { sd_event_unref(event); }
};
using Event = std::unique_ptr<sd_event, EventUnref>;

void drain(int eventfd) {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t read = ::read(eventfd, &count, sizeof(count));
}

// Its only work is to end the sleep; what to do is looked up afterwards.
int woken(sd_event_source*, int fd, std::uint32_t, void*) {
  drain(fd);
  return 0;
}

Result<Event> event_with(int wake) {
  sd_event* made = nullptr;
  if (int r = sd_event_new(&made); r < 0) return errno_failure("make an event loop", -r);
  Event event(made);
  if (int r = sd_event_add_io(made, nullptr, wake, POLLIN, woken, nullptr); r < 0)
    return errno_failure("watch the wake-up of the D-Bus thread", -r);
  return event;
}

}  // namespace

Result<std::unique_ptr<BusThread>> BusThread::start(DbusSetup setup,
                                                    std::chrono::milliseconds retry) {
  Fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return errno_failure("make an eventfd for the D-Bus thread", errno);
  return std::unique_ptr<BusThread>(new BusThread(std::move(setup), std::move(wake), retry));
}

BusThread::BusThread(DbusSetup setup, Fd wake, std::chrono::milliseconds retry)
    : setup_(std::move(setup)), wake_(std::move(wake)), retry_(retry) {
  waiting_.reserve(kWaiting);
  thread_ = std::thread([this] { run(); });
}

BusThread::~BusThread() {
  stop_ = true;
  wake();
  thread_.join();
}

void BusThread::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
}

void BusThread::evicted(const Eviction& eviction) {
  EvictedNotice notice = notice_of(eviction);
  {
    const std::lock_guard lock(mutex_);
    if (!connected_ || waiting_.size() == kWaiting) {
      ++lost_;
      return;
    }
    waiting_.push_back(std::move(notice));
  }
  wake();
}

void BusThread::run() {
  name_thread("dbus");
  while (!stop_) {
    Result<> served = failure("");
    try {
      served = serve();
    } catch (const std::exception& e) {
      served = failure(e.what());
    }
    connected_ = false;
    say(served);
    if (stop_) return;
    pollfd sleep{.fd = wake_.get(), .events = POLLIN, .revents = 0};
    ::poll(&sleep, 1, static_cast<int>(retry_.count()));
    drain(wake_.get());
  }
}

// Until stopped, or until the bus has gone.
Result<> BusThread::serve() {
  auto event = event_with(wake_.get());
  if (!event) return tl::make_unexpected(std::move(event.error()));
  auto service = DbusService::open(event->get(), setup_);
  if (!service) return tl::make_unexpected(std::move(service.error()));
  connected_ = true;
  complained_ = false;
  while (!stop_ && (*service)->connected()) {
    if (int r = sd_event_run(event->get(), kLookUsec); r < 0)
      return errno_failure("run the D-Bus event loop", -r);
    emit_waiting(**service);
    // A bus that has gone is noticed by the loop's own condition.
    if (auto told = (*service)->tell_changes(); !told) log::debug("{}", told.error().what);
  }
  if (stop_) return {};
  return failure("the system bus closed the connection");
}

void BusThread::emit_waiting(DbusService& service) {
  std::vector<EvictedNotice> notices;
  notices.reserve(kWaiting);
  {
    const std::lock_guard lock(mutex_);
    std::swap(notices, waiting_);
  }
  for (const EvictedNotice& notice : notices)
    if (!service.evicted(notice)) ++lost_;
}

void BusThread::say(const Result<>& result) {
  if (result || complained_) return;
  complained_ = true;
  log::warning("D-Bus: {}; headroomctl cannot reach this daemon; trying again every {} s",
               result.error().what, retry_.count() / 1000);
}

}  // namespace headroom::report
