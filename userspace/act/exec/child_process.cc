// SPDX-License-Identifier: Apache-2.0
#include "act/exec/child_process.h"

#include "act/exec/child_setup.h"

#include <headroom/decision.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

namespace headroom::act {
namespace {

constexpr int kPollMs = 100;  // how soon a stop request is noticed

struct Pipe {
  Fd read;
  Fd write;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_failure("make a pipe", errno);
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

// Nothing comes when the program has started: the pipe is closed on exec.
int read_child_errno(const Fd& read) {
  int error = 0;
  ssize_t n = 0;
  do
    n = ::read(read.get(), &error, sizeof error);
  while (n < 0 && errno == EINTR);
  return n == static_cast<ssize_t>(sizeof error) ? error : 0;
}

}  // namespace

Result<Child> Child::start(const Command& command) {
  if (command.argv.empty()) return failure("run a command: it is empty", EINVAL);
  auto child_setup = prepare_child(command);
  if (!child_setup) return tl::make_unexpected(child_setup.error());
  auto pipe = make_pipe();
  if (!pipe) return tl::make_unexpected(pipe.error());
  const pid_t pid = ::fork();
  if (pid < 0) return errno_failure("fork for " + command.argv[0], errno);
  if (pid == 0) exec_child(*child_setup, pipe->write.get());  // does not return
  pipe->write.reset(-1);
  Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  Child child(pid, std::move(pidfd));
  if (const int error = read_child_errno(pipe->read); error != 0)
    return errno_failure("run " + command.argv[0], error);  // the child is reaped as it goes
  return child;
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), pidfd_(std::move(other.pidfd_)) {}

Child::~Child() {
  if (pid_ == 0) return;
  kill();
  reap();
}

// Its group, for what it started itself.
void Child::kill() {
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);
}

int Child::reap() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
  if (WIFEXITED(status))
    return WEXITSTATUS(status) == 0 ? 0 : Outcome::kExitStatus | WEXITSTATUS(status);
  return Outcome::kExitStatus | (128 + WTERMSIG(status));  // as shells say it
}

int Child::wait(Instant deadline, Instant (*clock)(), const std::stop_token& stop) {
  for (;;) {
    pollfd exited{.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&exited, 1, kPollMs) > 0) return reap();
    const bool late = clock() >= deadline;
    if (!late && !stop.stop_requested()) continue;
    kill();
    reap();
    return late ? ETIMEDOUT : ECANCELED;
  }
}

}  // namespace headroom::act
