// SPDX-License-Identifier: Apache-2.0
#include "act/kill/reaper.h"

#include "base/clock.h"
#include "base/log/journal.h"
#include "base/process_stat.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace headroom::act {
namespace {

namespace fs = std::filesystem;

bool set_round_robin(pid_t thread, int flags) {
  const sched_param lowest{.sched_priority = ::sched_get_priority_min(SCHED_RR)};
  return ::sched_setscheduler(thread, SCHED_RR | flags, &lowest) == 0;
}

}  // namespace

pid_t pid_of(int pidfd) {
  std::ifstream info("/proc/self/fdinfo/" + std::to_string(pidfd));
  for (std::string word; info >> word;)
    if (pid_t pid = 0; word == "Pid:" && info >> pid) return pid;
  return 0;
}

bool raise_to_realtime(int pidfd) {
  const pid_t pid = pid_of(pidfd);
  if (pid < 1) return false;
  bool any = false;
  std::error_code gone;
  for (fs::directory_iterator task("/proc/" + std::to_string(pid) + "/task", gone), end;
       !gone && task != end; task.increment(gone)) {
    const std::string name = task->path().filename();
    pid_t thread = 0;
    std::from_chars(name.data(), name.data() + name.size(), thread);
    if (thread > 0 && set_round_robin(thread, 0)) any = true;
  }
  return any;
}

bool raise_this_thread_to_realtime() {
  return set_round_robin(0, SCHED_RESET_ON_FORK);
}

namespace {

constexpr std::chrono::milliseconds kRetryPeriod{10};
// The kind of descriptor in a request.
constexpr int kCgroup = 0, kProcess = 1;

struct KilledProcess {
  Fd process;
  std::int64_t resident_pages = 0;
};

// Those of the cgroup that were there when it was killed.
std::vector<KilledProcess> killed_processes(int cgroup_directory, Instant killed_at) {
  std::vector<KilledProcess> killed;
  for (Fd& process : open_pidfds(cgroup_directory)) {
    const pid_t pid = pid_of(process.get());
    const auto stat = pid > 0 ? process_stat(pid) : std::nullopt;
    if (stat && started_before(killed_at, *stat))
      killed.push_back({std::move(process), stat->resident_pages});
  }
  return killed;
}

bool has_exited(int pidfd) {
  pollfd ready{.fd = pidfd, .events = POLLIN, .revents = 0};
  return ::poll(&ready, 1, 0) != 0;
}

// EAGAIN: not all of the memory is freed yet. ESRCH, which is not retried: the memory is freed, or
// the process is freeing it itself.
bool is_retryable(int error) {
  return error == EAGAIN || error == EINTR;
}

}  // namespace

Reaper::Reaper(std::shared_ptr<SuspendedLimits> limits)
    : limits_(std::move(limits)), requested_(open_event_fd()) {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

Reaper::~Reaper() {
  thread_.request_stop();
  signal_event_fd(requested_.get());
  if (thread_.joinable()) thread_.join();
  for (auto& each : slots_)
    if (const int sent = each.descriptor.load(); sent >= 0) ::close(sent / 2);
}

void Reaper::assist(int cgroup_directory) {
  assist(cgroup_directory, observe::now());
}

void Reaper::assist(int cgroup_directory, Instant killed_at) {
  send(cgroup_directory, kCgroup, killed_at);
}

void Reaper::assist_process(int pidfd) {
  send(pidfd, kProcess, {});
}

void Reaper::send(int descriptor, int kind, Instant killed_at) {
  const std::lock_guard lock(send_mutex_);
  Slot& slot = slots_[next_in_ % kCapacity];
  const int copy = slot.descriptor.load(std::memory_order_acquire) < 0
                       ? ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
                       : -1;
  if (copy < 0) {
    ++dropped_;
    return;
  }
  slot.killed_at = killed_at;
  slot.descriptor.store(copy * 2 + kind, std::memory_order_release);
  ++next_in_;
  signal_event_fd(requested_.get());
}

ReaperCounts Reaper::counters() const {
  return {
      .limits_lifted = limits_lifted_, .boosted = boosted_, .reaped = reaped_, .dropped = dropped_};
}

Reaper::Request Reaper::take() {
  Slot& slot = slots_[next_out_ % kCapacity];
  if (slot.descriptor.load(std::memory_order_acquire) < 0) return {};
  const Instant killed_at = slot.killed_at;
  const int sent = slot.descriptor.exchange(-1, std::memory_order_acq_rel);
  ++next_out_;
  return {.sent = sent, .killed_at = killed_at};
}

void Reaper::run(const std::stop_token& stop) {
  report::set_thread_name("release");
  raise_this_thread_to_realtime();
  std::vector<KilledGroup> victims;
  while (!stop.stop_requested()) {
    log::log_exceptions("free the memory of killed processes", [&] {
      wait(victims);
      for (Request request = take(); request.sent >= 0; request = take())
        victims.push_back(begin(request));
      advance(victims);
    });
  }
  log::log_exceptions("restore the limits of killed cgroups", [&] {
    for (const KilledGroup& victim : victims)
      limits_->release(victim.lifted);
  });
}

// Until there is a request, or one of the processes has exited or is due.
void Reaper::wait(const std::vector<KilledGroup>& victims) {
  // Without the event it looks now and then.
  auto due = requested_ ? Clock::time_point::max() : Clock::now() + kRetryPeriod;
  watched_.clear();
  const auto watch = [&](int descriptor, Clock::time_point until) {
    watched_.push_back({.fd = descriptor, .events = POLLIN, .revents = 0});
    due = std::min(due, until);
  };
  watch(requested_.get(), due);
  for (const KilledGroup& victim : victims) {
    for (const DyingProcess& each : victim.dying)
      watch(each.process.get(), each.reaped ? each.give_up_at : each.due);
    if (!victim.others.empty()) watch(victim.others.back().get(), victim.give_up_at);
  }
  int timeout = -1;
  if (due != Clock::time_point::max())
    timeout = static_cast<int>(std::max<std::int64_t>(
        0, std::chrono::ceil<std::chrono::milliseconds>(due - Clock::now()).count()));
  (void)::poll(watched_.data(), watched_.size(), timeout);
  clear_event_fd(requested_.get());
}

void Reaper::add(Fd process, KilledGroup& victim) {
  const auto now = Clock::now();
  if (raise_to_realtime(process.get())) ++boosted_;
  victim.dying.push_back(
      {.process = std::move(process), .due = now + kReapDelay, .give_up_at = now + kReapTimeout});
}

void Reaper::add_group(int cgroup_directory, Instant killed_at, KilledGroup& victim) {
  std::vector<KilledProcess> killed = killed_processes(cgroup_directory, killed_at);
  const std::size_t helped = std::min(killed.size(), kMaxHelped);
  std::partial_sort(killed.begin(), killed.begin() + static_cast<std::ptrdiff_t>(helped),
                    killed.end(), [](const KilledProcess& a, const KilledProcess& b) {
                      return a.resident_pages > b.resident_pages;
                    });
  for (std::size_t i = 0; i < killed.size(); ++i)
    if (i < helped)
      add(std::move(killed[i].process), victim);
    else
      victim.others.push_back(std::move(killed[i].process));
  victim.give_up_at = Clock::now() + kReapTimeout;
}

Reaper::KilledGroup Reaper::begin(const Request& request) {
  KilledGroup victim;
  Fd descriptor(request.sent / 2);
  if (request.sent % 2 == kProcess) {
    add(std::move(descriptor), victim);
    return victim;
  }
  add_group(descriptor.get(), request.killed_at, victim);
  // All of them have exited already: there is nothing to speed up.
  if (!victim.dying.empty()) victim.lifted = limits_->lift(descriptor.get());
  ++limits_lifted_;
  return victim;
}

void Reaper::advance(std::vector<KilledGroup>& victims) {
  std::erase_if(victims, [&](KilledGroup& victim) {
    reap(victim.dying);
    const bool timed_out = Clock::now() >= victim.give_up_at;
    while (!victim.others.empty() && (timed_out || has_exited(victim.others.back().get())))
      victim.others.pop_back();
    if (!victim.dying.empty() || !victim.others.empty()) return false;
    limits_->release(victim.lifted);
    return true;
  });
}

void Reaper::reap(std::vector<DyingProcess>& dying) {
  const auto now = Clock::now();
  std::erase_if(dying, [&](DyingProcess& each) {
    if (has_exited(each.process.get()) || now >= each.give_up_at) return true;
    if (each.reaped || now < each.due) return false;
    if (::syscall(SYS_process_mrelease, each.process.get(), 0) == 0) {
      ++reaped_;
      each.reaped = true;
    } else if (is_retryable(errno)) {
      each.due = now + kRetryPeriod;
    } else {
      each.reaped = true;
    }
    return false;
  });
}

}  // namespace headroom::act
