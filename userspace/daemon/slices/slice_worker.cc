// SPDX-License-Identifier: Apache-2.0
#include "daemon/slices/slice_worker.h"

#include "act/limits/limit_lowering_threads.h"
#include "act/units/dbus_unit_manager.h"
#include "base/clock.h"
#include "base/log/journal.h"
#include "base/thread_cpu_time.h"
#include "observe/cgroup/cgroup_settings_watch.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <set>
#include <utility>

namespace headroom::daemon {
namespace {

// After news: what else is on its way comes with it.
constexpr Duration kSoon = std::chrono::milliseconds(10);

struct Unref {
  void operator()(sd_event* event) const { sd_event_unref(event); }
  void operator()(sd_event_source* source) const { sd_event_source_unref(source); }
};
using Event = std::unique_ptr<sd_event, Unref>;

std::uint64_t usec(Instant at) {
  return static_cast<std::uint64_t>(
      std::chrono::ceil<std::chrono::microseconds>(at.time_since_epoch()).count());
}

Result<Event> make_event() {
  sd_event* made = nullptr;
  if (int r = sd_event_new(&made); r < 0) return errno_failure("make an event loop", -r);
  return Event(made);
}

}  // namespace

// What the thread has on its stack.
class SliceWorker::Round {
 public:
  Round(SliceWorker& keeper, Event event)
      : keeper_(keeper),
        event_(std::move(event)),
        care_(keeper.reader_, keeper.possible_cpus_, std::make_unique<act::LimitLoweringThreads>(),
              [this] { soon(); }),
        watch_(keeper.reader_.root()) {}

  Result<> attach() {
    sd_event* event = event_.get();
    int r = sd_event_add_io(event, nullptr, keeper_.wake_.get(), EPOLLIN, &on_wake, this);
    if (r >= 0 && watch_.descriptor() >= 0)
      r = sd_event_add_io(event, nullptr, watch_.descriptor(), EPOLLIN, &on_knob, this);
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
  void soon() { look_by(observe::now() + kSoon); }

  void look_by(Instant at) {
    if (next_ && *next_ <= at) return;
    next_ = at;
    sd_event_source_set_time(timer_.get(), usec(at));
    sd_event_source_set_enabled(timer_.get(), SD_EVENT_ONESHOT);
  }

  void look() {
    if (!mode_) return;
    const Instant at = observe::now();
    next_.reset();
    keep_bus(at);
    const auto due = care_.look(at);
    watch();
    report::SlicesView view = care_.view();
    if (bus_) {
      view.calls = calls_before_.calls + bus_->counts().calls;
      view.calls_failed = calls_before_.failed + bus_->counts().failed;
      view.calls_waited = calls_before_.waited + bus_->counts().waited;
    }
    keeper_.show(std::move(view));
    if (mode_ == SlicesMode::kOff) return;
    look_by(due ? std::clamp(*due, at + kSoon, at + kEvery) : at + kEvery);
  }

  // Only who writes needs it.
  void keep_bus(Instant at) {
    if (bus_ && bus_->connected() && mode_ == SlicesMode::kEnforce) return;
    if (bus_) drop_bus("the system bus closed the connection");
    if (mode_ != SlicesMode::kEnforce || (tried_at_ && at - *tried_at_ < kRetry)) return;
    tried_at_ = at;
    auto bus = act::DbusUnitManager::open(event_.get(), [this] { soon(); });
    if (!bus) return drop_bus(bus.error().what);
    bus_ = std::move(*bus);
    watched_units_.clear();
    care_.use(bus_.get(), "");
    said_.clear();
  }

  void drop_bus(const std::string& why) {
    if (bus_) {
      calls_before_.calls += bus_->counts().calls;
      calls_before_.failed += bus_->counts().failed;
      calls_before_.waited += bus_->counts().waited;
    }
    bus_.reset();
    care_.use(nullptr, why);
    if (mode_ == SlicesMode::kEnforce && said_ != why)
      log::warning("slices: {}; trying again every {} s", why,
                   std::chrono::duration_cast<std::chrono::seconds>(kRetry).count());
    said_ = why;
  }

  void watch() {
    for (const std::string& path : care_.paths()) {
      watch_.watch(path);
      if (bus_ && watched_units_.insert(path).second) bus_->watch(path.substr(path.rfind('/') + 1));
    }
  }

  void adopt(SliceOptions terms) {
    mode_ = terms.mode;
    care_.adopt(std::move(terms));
    soon();
  }

  static int on_wake(sd_event_source*, int fd, std::uint32_t, void* data) {
    auto* round = static_cast<Round*>(data);
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t read = ::read(fd, &count, sizeof(count));
    if (auto terms = round->keeper_.take()) round->adopt(std::move(*terms));
    return 0;
  }
  static int on_knob(sd_event_source*, int, std::uint32_t, void* data) {
    auto* round = static_cast<Round*>(data);
    if (round->watch_.drain()) round->soon();
    return 0;
  }
  static int on_timer(sd_event_source*, std::uint64_t, void* data) {
    static_cast<Round*>(data)->look();
    return 0;
  }

  SliceWorker& keeper_;
  const Event event_;
  std::unique_ptr<sd_event_source, Unref> timer_;
  std::optional<SlicesMode> mode_;  // absent: nothing was submitted yet
  SliceReconciler care_;
  observe::CgroupSettingsWatch watch_;
  std::unique_ptr<act::DbusUnitManager> bus_;  // after care_, which its callbacks use
  act::DbusUnitManager::Counts calls_before_;
  std::set<std::string> watched_units_;
  std::optional<Instant> next_;
  std::optional<Instant> tried_at_;
  std::string said_;
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
  Fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return errno_failure("make an eventfd for the slices' thread", errno);
  std::unique_ptr<SliceWorker> keeper(
      new SliceWorker(std::move(reader), std::move(possible_cpus), std::move(wake)));
  keeper->show({.mode = mode, .slices = {}, .error = "the slices have not been looked at yet"});
  keeper->thread_ = std::thread([raw = keeper.get()] { raw->run(); });
  return keeper;
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
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
}

void SliceWorker::submit(SliceOptions terms) {
  {
    const std::lock_guard lock(mutex_);
    next_ = std::move(terms);
  }
  wake();
}

std::optional<SliceOptions> SliceWorker::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(next_, std::nullopt);
}

report::SlicesRef SliceWorker::current() const {
  const std::lock_guard lock(mutex_);
  return shown_;
}

void SliceWorker::show(report::SlicesView view) {
  auto shown = std::make_shared<const report::SlicesView>(std::move(view));
  const std::lock_guard lock(mutex_);
  shown_.swap(shown);
}

void SliceWorker::run() {
  report::set_thread_name("slices");
  try {
    auto event = make_event();
    Result<> turned;
    if (event) {
      Round round(*this, std::move(*event));
      turned = round.attach();
      while (turned && !stop_)
        turned = round.turn();
    } else {
      turned = tl::make_unexpected(event.error());
    }
    if (!turned) log::error("{}: the slices are left as they are", turned.error().what);
  } catch (const std::exception& e) {  // a library's: nothing of ours throws
    log::error("{}: the slices are left as they are", e.what());
  }
}

}  // namespace headroom::daemon
