// SPDX-License-Identifier: Apache-2.0
#include "daemon/slices/slice_worker.h"

#include "act/limits/limit_lowering.h"
#include "act/units/dbus_unit_manager.h"
#include "base/clock.h"
#include "base/file_io.h"
#include "base/log/journal.h"
#include "base/process_stat.h"
#include "daemon/sources/event_loop.h"
#include "observe/cgroup/cgroup_settings_watch.h"

#include <sys/epoll.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <set>
#include <utility>

namespace headroom::daemon {
namespace {

// The delay after an event, so that further events are handled together.
constexpr Duration kMinCheckDelay = std::chrono::milliseconds(10);

}  // namespace

// The thread's own state, on its stack.
class SliceWorker::EventLoop {
 public:
  EventLoop(SliceWorker& worker, Event event)
      : worker_(worker),
        event_(std::move(event)),
        reconciler_(worker.reader_, worker.possible_cpus_,
                    std::make_unique<act::LimitLoweringThreads>(), [this] { check_soon(); }),
        watch_(worker.reader_.root()) {}

  Result<> attach() {
    sd_event* event = event_.get();
    int r = sd_event_add_io(event, nullptr, worker_.wake_.get(), EPOLLIN, &on_wake, this);
    if (r >= 0 && watch_.descriptor() >= 0)
      r = sd_event_add_io(event, nullptr, watch_.descriptor(), EPOLLIN, &on_setting_changed, this);
    sd_event_source* timer = nullptr;
    if (r >= 0) r = sd_event_add_time(event, &timer, CLOCK_BOOTTIME, 0, 1000, &on_timer, this);
    timer_.reset(timer);
    if (r < 0) return errno_failure("set up the slices' event loop", -r);
    return {};
  }

  Result<> turn() {
    if (int r = sd_event_run(event_.get(), UINT64_MAX); r < 0)
      return errno_failure("run the slices' event loop", -r);
    return {};
  }

 private:
  void check_soon() { check_by(observe::now() + kMinCheckDelay); }

  void check_by(Instant at) {
    if (next_ && *next_ <= at) return;
    next_ = at;
    sd_event_source_set_time(timer_.get(), usec(at));
    sd_event_source_set_enabled(timer_.get(), SD_EVENT_ONESHOT);
  }

  void check() {
    if (!mode_) return;
    const Instant at = observe::now();
    next_.reset();
    ensure_bus(at);
    const auto due = reconciler_.reconcile(at);
    watch();
    report::SlicesView view = reconciler_.view();
    if (bus_) {
      view.calls = calls_before_.calls + bus_->counts().calls;
      view.calls_failed = calls_before_.failed + bus_->counts().failed;
      view.calls_waited = calls_before_.waited + bus_->counts().waited;
    }
    worker_.publish(std::move(view));
    if (mode_ == SlicesMode::kOff) return;
    check_by(due ? std::clamp(*due, at + kMinCheckDelay, at + kCheckPeriod) : at + kCheckPeriod);
  }

  // The bus is only needed for writing.
  void ensure_bus(Instant at) {
    if (bus_ && bus_->connected() && mode_ == SlicesMode::kEnforce) return;
    if (bus_) close_bus("the system bus closed the connection");
    if (mode_ != SlicesMode::kEnforce || (tried_at_ && at - *tried_at_ < kRetryPeriod)) return;
    tried_at_ = at;
    auto bus = act::DbusUnitManager::open(event_.get(), [this] { check_soon(); });
    if (!bus) return close_bus(bus.error().what);
    bus_ = std::move(*bus);
    watched_units_.clear();
    reconciler_.use(bus_.get(), "");
    last_logged_.clear();
  }

  void close_bus(const std::string& why) {
    if (bus_) {
      calls_before_.calls += bus_->counts().calls;
      calls_before_.failed += bus_->counts().failed;
      calls_before_.waited += bus_->counts().waited;
    }
    bus_.reset();
    reconciler_.use(nullptr, why);
    if (mode_ == SlicesMode::kEnforce && last_logged_ != why)
      log::warning("slices: {}; trying again every {} s", why,
                   std::chrono::duration_cast<std::chrono::seconds>(kRetryPeriod).count());
    last_logged_ = why;
  }

  void watch() {
    for (const std::string& path : reconciler_.paths()) {
      watch_.watch(path);
      if (bus_ && watched_units_.insert(path).second) bus_->watch(path.substr(path.rfind('/') + 1));
    }
  }

  void reconfigure(SliceOptions options) {
    mode_ = options.mode;
    reconciler_.reconfigure(std::move(options));
    check_soon();
  }

  static int on_wake(sd_event_source*, int fd, std::uint32_t, void* data) {
    auto* event_loop = static_cast<EventLoop*>(data);
    clear_event_fd(fd);
    log::log_exceptions("configure the slices", [event_loop] {
      if (auto options = event_loop->worker_.take_next())
        event_loop->reconfigure(std::move(*options));
    });
    return 0;
  }
  static int on_setting_changed(sd_event_source*, int, std::uint32_t, void* data) {
    auto* event_loop = static_cast<EventLoop*>(data);
    log::log_exceptions("watch the slices", [event_loop] {
      if (event_loop->watch_.drain()) event_loop->check_soon();
    });
    return 0;
  }
  static int on_timer(sd_event_source*, std::uint64_t, void* data) {
    auto* event_loop = static_cast<EventLoop*>(data);
    if (!log::log_exceptions("check the slices", [event_loop] { event_loop->check(); }))
      event_loop->check_by(observe::now() + kCheckPeriod);
    return 0;
  }

  SliceWorker& worker_;
  const Event event_;
  EventSource timer_;
  std::optional<SlicesMode> mode_;  // absent: nothing was submitted yet
  SliceReconciler reconciler_;
  observe::CgroupSettingsWatch watch_;
  std::unique_ptr<act::DbusUnitManager> bus_;  // its callbacks use reconciler_: destroyed before
  act::DbusUnitManager::Counts calls_before_;
  std::set<std::string> watched_units_;
  std::optional<Instant> next_;
  std::optional<Instant> tried_at_;
  std::string last_logged_;
};

Result<std::unique_ptr<SliceWorker>> SliceWorker::start(observe::SliceReader reader,
                                                        CpuSet possible_cpus, SlicesMode mode) {
  auto event = make_event();
  if (!event) return tl::make_unexpected(event.error());
  if (mode == SlicesMode::kEnforce) {
    const auto bus = act::DbusUnitManager::open(event->get(), [] {});
    if (!bus)
      return failure("headroom.slices.mode enforce: " + bus.error().what +
                     "; where there is no systemd to set the slices' values, use observe");
  }
  Fd wake = open_event_fd();
  if (!wake) return errno_failure("make an eventfd for the slices' thread", errno);
  std::unique_ptr<SliceWorker> worker(
      new SliceWorker(std::move(reader), std::move(possible_cpus), std::move(wake)));
  worker->publish({.mode = mode, .slices = {}, .error = "the slices have not been read yet"});
  worker->thread_ = std::thread([raw = worker.get()] { raw->run(); });
  return worker;
}

SliceWorker::SliceWorker(observe::SliceReader reader, CpuSet possible_cpus, Fd wake)
    : reader_(std::move(reader)),
      possible_cpus_(std::move(possible_cpus)),
      wake_(std::move(wake)) {}

SliceWorker::~SliceWorker() {
  stop_ = true;
  wake();
  if (thread_.joinable()) thread_.join();
}

void SliceWorker::wake() const {
  signal_event_fd(wake_.get());
}

void SliceWorker::submit(SliceOptions options) {
  {
    const std::lock_guard lock(mutex_);
    pending_ = std::move(options);
  }
  wake();
}

std::optional<SliceOptions> SliceWorker::take_next() {
  const std::lock_guard lock(mutex_);
  return std::exchange(pending_, std::nullopt);
}

report::SlicesRef SliceWorker::current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

void SliceWorker::publish(report::SlicesView view) {
  auto previous = std::make_shared<const report::SlicesView>(std::move(view));
  const std::lock_guard lock(mutex_);
  current_.swap(previous);
}

void SliceWorker::run() {
  report::set_thread_name("slices");
  try {
    auto event = make_event();
    Result<> turned;
    if (event) {
      EventLoop event_loop(*this, std::move(*event));
      turned = event_loop.attach();
      while (turned && !stop_)
        turned = event_loop.turn();
    } else {
      turned = tl::make_unexpected(event.error());
    }
    if (!turned) log::error("{}: the slices are left as they are", turned.error().what);
  } catch (const std::exception& e) {  // from a library: headroom's code does not throw
    log::error("{}: the slices are left as they are", e.what());
  }
}

}  // namespace headroom::daemon
