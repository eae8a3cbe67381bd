// SPDX-License-Identifier: Apache-2.0
#include "act/kill/reaper.h"

#include "act/kill/cgroup_processes.h"
#include "act/kill/kill_assist.h"
#include "base/process_stat.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <optional>
#include <utility>

namespace headroom::act {
namespace {

constexpr std::chrono::milliseconds kAgain{10};
// What a descriptor sent is of.
constexpr int kCgroup = 0, kProcess = 1;

Instant boot_time() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return Instant(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

// Starts are known in clock ticks (10 ms): the next process of a service starts later than that.
bool started_by(Instant instant, int pidfd) {
  static const auto kTicksPerSecond = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  const pid_t pid = pid_of(pidfd);
  const auto stat = pid > 0 ? process_stat(pid) : std::nullopt;
  const auto since_boot = std::chrono::nanoseconds(instant.time_since_epoch()).count();
  return stat && stat->name.started <=
                     static_cast<std::uint64_t>(since_boot) / (1'000'000'000u / kTicksPerSecond);
}

bool has_exited(int pidfd) {
  pollfd ready{.fd = pidfd, .events = POLLIN, .revents = 0};
  return ::poll(&ready, 1, 0) != 0;
}

// ESRCH: its memory is gone, or going by its own hand. EAGAIN: not all of it yet.
bool needs_more(int error) {
  return error == EAGAIN || error == EINTR;
}

}  // namespace

Reaper::Reaper(std::shared_ptr<SuspendedLimits> limits) : limits_(std::move(limits)) {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

Reaper::~Reaper() {
  thread_.request_stop();
  news_.release();
  if (thread_.joinable()) thread_.join();
  for (auto& each : waiting_)
    if (const int sent = each.descriptor.load(); sent >= 0) ::close(sent / 2);
}

void Reaper::help(int cgroup_directory) {
  help(cgroup_directory, boot_time());
}

void Reaper::help(int cgroup_directory, Instant killed_at) {
  send(cgroup_directory, kCgroup, killed_at);
}

void Reaper::help_process(int pidfd) {
  send(pidfd, kProcess, {});
}

void Reaper::send(int descriptor, int kind, Instant killed_at) {
  const std::lock_guard lock(senders_);
  Sent& place = waiting_[next_in_ % kRoom];
  const int copy = place.descriptor.load(std::memory_order_acquire) < 0
                       ? ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
                       : -1;
  if (copy < 0) {
    ++refused_;
    return;
  }
  place.killed_at = killed_at;
  place.descriptor.store(copy * 2 + kind, std::memory_order_release);
  ++next_in_;
  news_.release();
}

ReaperCounts Reaper::tally() const {
  return {.uncapped = uncapped_, .boosted = boosted_, .reaped = reaped_, .refused = refused_};
}

Reaper::Taken Reaper::take() {
  Sent& place = waiting_[next_out_ % kRoom];
  if (place.descriptor.load(std::memory_order_acquire) < 0) return {};
  const Instant killed_at = place.killed_at;
  const int sent = place.descriptor.exchange(-1, std::memory_order_acq_rel);
  ++next_out_;
  return {.sent = sent, .killed_at = killed_at};
}

void Reaper::run(const std::stop_token& stop) {
  ::pthread_setname_np(::pthread_self(), "hr-release");
  raise_this_thread_to_realtime();
  std::vector<Victim> victims;
  while (!stop.stop_requested()) {
    if (victims.empty())
      news_.acquire();
    else
      (void)news_.try_acquire_for(kAgain);
    for (Taken taken = take(); taken.sent >= 0; taken = take())
      victims.push_back(begin(taken));
    advance(victims);
  }
  for (const Victim& victim : victims)
    limits_->release(victim.lifted);
}

void Reaper::add(Fd process, Victim& victim) {
  const auto now = Clock::now();
  if (raise_to_realtime(process.get())) ++boosted_;
  victim.dying.push_back(
      {.process = std::move(process), .due = now + kHedge, .given_up = now + kPatience});
}

Reaper::Victim Reaper::begin(const Taken& taken) {
  Victim victim;
  Fd descriptor(taken.sent / 2);
  if (taken.sent % 2 == kProcess) {
    add(std::move(descriptor), victim);
    return victim;
  }
  for (Fd& process : hold_processes(descriptor.get()))
    if (started_by(taken.killed_at, process.get())) add(std::move(process), victim);
  // All of them have exited already: there is nothing to speed up.
  if (!victim.dying.empty()) victim.lifted = limits_->lift(descriptor.get());
  ++uncapped_;
  return victim;
}

void Reaper::advance(std::vector<Victim>& victims) {
  std::erase_if(victims, [&](Victim& victim) {
    reap(victim.dying);
    if (!victim.dying.empty()) return false;
    limits_->release(victim.lifted);
    return true;
  });
}

void Reaper::reap(std::vector<Dying>& dying) {
  const auto now = Clock::now();
  std::erase_if(dying, [&](Dying& each) {
    if (has_exited(each.process.get()) || now >= each.given_up) return true;
    if (each.reaped || now < each.due) return false;
    if (::syscall(SYS_process_mrelease, each.process.get(), 0) == 0) {
      ++reaped_;
      each.reaped = true;
    } else if (needs_more(errno)) {
      each.due = now + kAgain;
    } else {
      each.reaped = true;
    }
    return false;
  });
}

}  // namespace headroom::act
