// SPDX-License-Identifier: Apache-2.0
#include "act/kill/sentinel.h"

#include "act/kill/kill_fds.h"
#include "base/log/journal.h"
#include "base/process_stat.h"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <system_error>
#include <thread>
#include <utility>

namespace headroom::act {

using namespace std::chrono_literals;

bool LatenessCheck::is_late(Instant due, Instant now) {
  if (next_ && now > *next_ + kLate / 2 && excused_due_ != due) {
    excused_due_ = due;
    excused_at_ = now;
  }
  const Instant since = excused_due_ == due ? std::max(due, excused_at_) : due;
  return due != Instant::max() && now > since + kLate;
}

namespace {

Fd checked(Fd descriptor, const char* what) {
  if (!descriptor) throw std::system_error(errno, std::generic_category(), what);
  return descriptor;
}

}  // namespace

Sentinel::Sentinel(Setup setup)
    : setup_(std::move(setup)),
      timer_(checked(Fd(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)), "timerfd")),
      stop_(checked(open_event_fd(), "eventfd")) {
  done_.reserve(16);
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

Sentinel::~Sentinel() = default;

// The timer first: woken for the former time, the thread finds the loop not yet overdue, or looks
// again after kPeriod.
void Sentinel::beat(Instant due) {
  if (due == due_.load(std::memory_order_relaxed)) return;
  itimerspec once{};  // never
  if (due != Instant::max()) {
    const std::chrono::nanoseconds expiry = (due + kOverdue).time_since_epoch();
    once.it_value = {.tv_sec = expiry / 1s, .tv_nsec = (expiry % 1s).count()};
  }
  ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &once, nullptr);
  due_.store(due, std::memory_order_release);
}

void Sentinel::set_failsafe_list(std::int64_t limit, std::vector<FailsafeVictim> victims) {
  const std::lock_guard lock(mutex_);
  limit_ = limit;
  std::swap(victims_, victims);
}

void Sentinel::collect(std::vector<Outcome>& ended) {
  if (!has_outcomes_.exchange(false)) return;
  const std::lock_guard lock(mutex_);
  ended.insert(ended.end(), done_.begin(), done_.end());
  done_.clear();
}

bool Sentinel::is_overdue(Instant due, Instant now) {
  return due != Instant::max() && now >= due + kOverdue;
}

// Until the loop is overdue the thread sleeps; then it looks every kPeriod.
void Sentinel::run(const std::stop_token& stop) {
  report::set_thread_name("sentinel");
  const std::stop_callback wake(stop, [this] { signal_event_fd(stop_.get()); });
  bool hanging = false;
  bool polls = false;
  while (!stop.stop_requested()) {
    const Instant due = due_.load(std::memory_order_acquire), now = setup_.now();
    const bool expired = is_overdue(due, now);
    // Without polling it was the timer that woke the thread, on time or late.
    if (expired && !polls) lateness_.set_next(due + kOverdue);
    const bool is_late = expired && lateness_.is_late(due, now);
    if (is_late && !hanging) ++hangs_;
    hanging = is_late;
    if (is_late) log::log_exceptions("sentinel", [this] { check_memory(); });
    polls = expired;
    lateness_.set_next(setup_.now() + kPeriod);
    // A timer that has expired stays readable until the next beat().
    std::array<pollfd, 2> ready{{{.fd = stop_.get(), .events = POLLIN, .revents = 0},
                                 {.fd = timer_.get(), .events = POLLIN, .revents = 0}}};
    ::poll(ready.data(), polls ? 1 : 2, polls ? static_cast<int>(kPeriod / 1ms) : -1);
  }
}

void Sentinel::check_memory() {
  if (setup_.now() < wait_until_) return;
  if (const auto seen = setup_.read_memory()) act(*seen);
}

namespace {

bool is_alive(const FailsafeVictim& victim) {
  if (victim.process)
    return ::syscall(SYS_pidfd_send_signal, victim.process.get(), 0, nullptr, 0) == 0;
  return victim.kill && cgroup_populated(victim.events.get());
}

// Looks for processes that were forked meanwhile, and the time between two.
constexpr int kLooks = 20;
constexpr std::chrono::milliseconds kLookPeriod{5};

// The loop may hang because cgroup_mutex is held, which a write to cgroup.kill takes as well
// (KillFallback). So each process is sent SIGKILL, until none is left or a tenth of a second is
// over: a killed process cannot fork, and one that is large takes longer to end.
bool kill_processes(const FailsafeVictim& victim) {
  for (int look = 0; look < kLooks; ++look) {
    if (look > 0) std::this_thread::sleep_for(kLookPeriod);
    const auto sent = signal_processes(victim.directory.get(), SIGKILL);
    if (!sent && look == 0) {
      errno = sent.error().code == ENOENT ? ENODEV : sent.error().code;  // removed, as a write says
      return false;
    }
    if (!sent || !cgroup_populated(victim.events.get())) break;
  }
  return true;
}

bool kill_now(const FailsafeVictim& victim) {
  if (victim.process)
    return ::syscall(SYS_pidfd_send_signal, victim.process.get(), SIGKILL, nullptr, 0) == 0;
  return kill_processes(victim);
}

}  // namespace

namespace {

// As the ranking orders them before it looks at their usage.
bool rank_alike(const FailsafeVictim& a, const FailsafeVictim& b) {
  const auto is_described = [](const Pod& pod) { return pod.source != PodSource::kCgroupTree; };
  const Pod &one = *a.decision.pod, &other = *b.decision.pod;
  return one.priority == other.priority && is_described(one) == is_described(other);
}

// A pod that holds less is not what fills the node.
std::int64_t least_worth_killing(std::int64_t missing) {
  constexpr std::int64_t kSmall = 16 << 20, kWorthwhile = 8;
  return std::max(kSmall, missing / kWorthwhile);
}

}  // namespace

bool Sentinel::may_be_killed(const FailsafeVictim& victim) const {
  return setup_.now() >= victim.not_before && is_alive(victim);
}

// The first of the list that holds more than it requested, and something worth it; of those that
// rank alike the one that holds most beyond its request. None: all keep to their requests, and the
// kernel's OOM killer knows better what came since the list was made.
FailsafeVictim* Sentinel::choose(std::int64_t missing) {
  FailsafeVictim* chosen = nullptr;
  std::int64_t most = 0;
  for (FailsafeVictim& victim : victims_) {
    if (!may_be_killed(victim)) continue;
    const auto used = setup_.working_set && !victim.process
                          ? setup_.working_set(victim.directory.get())
                          : std::nullopt;
    if (!used) return chosen ? chosen : &victim;
    const std::int64_t excess = *used - victim.decision.rank_info.memory_request.count;
    if (excess <= 0 || *used < least_worth_killing(missing)) continue;
    if (chosen && !(rank_alike(*chosen, victim) && excess > most)) continue;
    chosen = &victim;
    most = excess;
  }
  return chosen;
}

// A starved CPU frees memory slower than predicted.
bool Sentinel::is_memory_returning(std::int64_t available) {
  constexpr std::int64_t kSome = 1 << 20;
  constexpr Duration kStill = std::chrono::milliseconds(100), kLongest = std::chrono::seconds(30);
  const Instant now = setup_.now();
  if (available < returned_to_ + kSome || now - killed_at_ > kLongest) return false;
  returned_to_ = available;
  wait_until_ = now + kStill;
  return true;
}

void Sentinel::act(const Observation& seen) {
  const std::lock_guard lock(mutex_);
  if (seen.available >= limit_) return;
  if (killed_at_ != Instant{} && is_memory_returning(seen.available)) return;
  FailsafeVictim* const victim = choose(limit_ - seen.available);
  if (!victim) return;
  Decision& decision = victim->decision;
  decision.decided_at = setup_.now();
  decision.reason.available = seen.available;
  decision.reason.capacity = seen.capacity;
  decision.reason.threshold = limit_;
  decision.reason.sampled_at = decision.reason.first_crossed = seen.at;
  const bool killed = kill_now(*victim);
  const int error = killed ? 0 : errno;
  const Instant at = setup_.now();
  if (killed && setup_.reaper && victim->process)
    setup_.reaper->assist_process(victim->process.get());
  else if (killed && setup_.reaper)
    setup_.reaper->assist(victim->directory.get());
  victim->not_before = at + setup_.kill_again_after;
  if (!killed && (error == ENODEV || error == ESRCH)) {  // removed: it cannot come back
    victim->kill.reset();
    victim->process.reset();
  }
  if (killed) ++kills_;
  killed_at_ = at;
  returned_to_ = seen.available;
  wait_until_ = at + decision.rank_info.predicted_in + kOverdue / 4;
  decision.deadline = wait_until_;
  const auto result = killed                              ? Outcome::Result::kDone
                      : error == ENODEV || error == ESRCH ? Outcome::Result::kGone
                                                          : Outcome::Result::kFailed;
  done_.push_back({.decision = decision, .result = result, .error = error, .at = at});
  has_outcomes_ = true;
}

}  // namespace headroom::act
