// SPDX-License-Identifier: Apache-2.0
#include "act/releaser.h"

#include "act/boost.h"
#include "act/processes.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace headroom::act {
namespace {

constexpr std::chrono::milliseconds kAgain{10};
// What a descriptor sent is of.
constexpr int kCgroup = 0, kProcess = 1;

// A knob that is not there has nothing to lift.
void write_knob(int directory, const char* knob, std::string_view value) {
  const Fd file(::openat(directory, knob, O_WRONLY | O_CLOEXEC | O_NONBLOCK));
  if (file) (void)!::write(file.get(), value.data(), value.size());
}

void uncap(int directory) {
  write_knob(directory, "cpu.max", "max");
  write_knob(directory, "cpu.weight", "10000");
  write_knob(directory, "cpuset.cpus", "\n");  // whatever the parent has
  write_knob(directory, "memory.high", "max");
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

Releaser::Releaser() {
  for (auto& each : waiting_)
    each.store(-1, std::memory_order_relaxed);
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

Releaser::~Releaser() {
  thread_.request_stop();
  news_.release();
  if (thread_.joinable()) thread_.join();
  for (auto& each : waiting_)
    if (const int sent = each.load(); sent >= 0) ::close(sent / 2);
}

void Releaser::help(int cgroup_directory) {
  send(cgroup_directory, kCgroup);
}

void Releaser::help_process(int pidfd) {
  send(pidfd, kProcess);
}

void Releaser::send(int descriptor, int kind) {
  const std::lock_guard lock(senders_);
  std::atomic<int>& place = waiting_[next_in_ % kRoom];
  const int copy =
      place.load(std::memory_order_acquire) < 0 ? ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0) : -1;
  if (copy < 0) {
    ++refused_;
    return;
  }
  place.store(copy * 2 + kind, std::memory_order_release);
  ++next_in_;
  news_.release();
}

ReleaseTally Releaser::tally() const {
  return {.uncapped = uncapped_, .boosted = boosted_, .reaped = reaped_, .refused = refused_};
}

int Releaser::take() {
  const int sent = waiting_[next_out_ % kRoom].exchange(-1, std::memory_order_acq_rel);
  if (sent >= 0) ++next_out_;
  return sent;
}

void Releaser::run(const std::stop_token& stop) {
  ::pthread_setname_np(::pthread_self(), "hr-release");
  boost_this_thread();
  std::vector<Dying> dying;
  while (!stop.stop_requested()) {
    if (dying.empty())
      news_.acquire();
    else
      (void)news_.try_acquire_for(kAgain);
    for (int sent = take(); sent >= 0; sent = take())
      attend(sent, dying);
    reap(dying);
  }
}

void Releaser::attend(int sent, std::vector<Dying>& dying) {
  const auto now = Clock::now();
  const auto hurry = [&](Fd process) {
    if (boost(process.get())) ++boosted_;
    dying.push_back(
        {.process = std::move(process), .due = now + kHedge, .given_up = now + kPatience});
  };
  Fd descriptor(sent / 2);
  if (sent % 2 == kProcess) return hurry(std::move(descriptor));
  for (Fd& process : hold_processes(descriptor.get()))
    hurry(std::move(process));
  each_below(descriptor.get(), &uncap);
  ++uncapped_;
}

void Releaser::reap(std::vector<Dying>& dying) {
  const auto now = Clock::now();
  std::erase_if(dying, [&](Dying& each) {
    if (has_exited(each.process.get()) || now >= each.given_up) return true;
    if (now < each.due) return false;
    if (::syscall(SYS_process_mrelease, each.process.get(), 0) == 0) {
      ++reaped_;
      return true;
    }
    each.due = now + kAgain;
    return !needs_more(errno);
  });
}

}  // namespace headroom::act
