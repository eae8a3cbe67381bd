// SPDX-License-Identifier: Apache-2.0
#include "act/kill/kill_fallback.h"

#include "act/kill/reaper.h"
#include "base/log/journal.h"
#include "base/process_stat.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

namespace headroom::act {

KillFallback::KillFallback(Instant (*now)()) : now_(now) {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

KillFallback::~KillFallback() = default;

void KillFallback::begin(int cgroup_directory) {
  {
    const std::lock_guard lock(mutex_);
    directory_ = cgroup_directory;
    due_ = Clock::now() + kPatience;
    sent_at_.reset();
  }
  changed_.notify_one();
}

void KillFallback::end() {
  const std::lock_guard lock(mutex_);
  directory_ = -1;
}

std::optional<Instant> KillFallback::sent_before_write() const {
  const std::lock_guard lock(mutex_);
  return sent_at_;
}

long KillFallback::kill(int cgroup_directory, int cgroup_kill) {
  begin(cgroup_directory);
  const ssize_t written = ::write(cgroup_kill, "1", 1);
  const int error = errno;
  end();
  errno = error;
  return written;
}

void KillFallback::run(const std::stop_token& stop) {
  report::set_thread_name("kill");
  raise_this_thread_to_realtime();
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return directory_ >= 0; })) {
    // Another write may begin meanwhile: it has its own time.
    while (directory_ >= 0 && Clock::now() < due_)
      changed_.wait_until(lock, stop, due_, [&] { return stop.stop_requested(); });
    if (stop.stop_requested()) return;
    if (directory_ >= 0) log::log_exceptions("kill a cgroup", [&] { send_kills(lock, stop); });
  }
}

void KillFallback::send_kills(std::unique_lock<std::mutex>& lock, const std::stop_token& stop) {
  ++used_;
  const auto began = due_;
  // A copy: the caller may close its own as soon as the write has returned.
  const Fd directory(::fcntl(directory_, F_DUPFD_CLOEXEC, 0));
  std::size_t most = 0;
  while (directory && directory_ >= 0 && due_ == began && !stop.stop_requested()) {
    lock.unlock();
    const std::size_t sent = signal_processes(directory.get(), SIGKILL).value_or(0);
    const Instant sent_at = now_();
    most = std::max(most, sent);
    lock.lock();
    if (directory_ < 0 || due_ != began) break;
    if (sent > 0 && !sent_at_) sent_at_ = sent_at;
    changed_.wait_for(lock, stop, kPeriod, [&] { return directory_ < 0; });
  }
  lock.unlock();
  log::warning("cgroup.kill did not return within {} ms: SIGKILL was sent to {} processes",
               kPatience.count(), most);
  lock.lock();
}

}  // namespace headroom::act
