// SPDX-License-Identifier: Apache-2.0
#include "support/crash_points.h"

#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include <gtest/gtest.h>

namespace headroom::test {
namespace {

// Whether a system call changes a file. Pipes, sockets and eventfds are written too; those calls
// are crash points like any other.
bool changes_files(const __ptrace_syscall_info& call) {
  switch (call.entry.nr) {
    case SYS_write:
    case SYS_pwrite64:
    case SYS_writev:
    case SYS_renameat:
    case SYS_renameat2:
    case SYS_unlinkat:
    case SYS_mkdirat:
    case SYS_ftruncate:
    case SYS_fchmod:
#ifdef SYS_rename  // arm64 has none of these
    case SYS_rename:
    case SYS_unlink:
    case SYS_rmdir:
    case SYS_mkdir:
#endif
      return true;
    case SYS_openat:
      return (call.entry.args[2] & (O_CREAT | O_TRUNC)) != 0;
    default:
      return false;
  }
}

pid_t start_traced(const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(2);
  ::raise(SIGSTOP);
  work();
  ::_exit(0);
}

struct Run {
  int writes = 0;
  bool ended = false;  // by itself
};

// Lets the child and its threads run until the given write. A thread may be seen before the event
// of its creation.
Run run_until(pid_t child, int last_write) {
  Run run;
  for (;;) {
    int status = 0;
    const pid_t thread = ::waitpid(-1, &status, __WALL);
    if (thread < 0) return run;
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      run.ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
      if (thread == child) return run;
      continue;
    }
    int signal = WSTOPSIG(status);
    if (signal == (SIGTRAP | 0x80)) {
      __ptrace_syscall_info call{};
      ::ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof call, &call);
      if (call.op == PTRACE_SYSCALL_INFO_ENTRY && changes_files(call) && ++run.writes == last_write)
        ::kill(child, SIGKILL);  // the call is not carried out
      signal = 0;
    } else if (signal == SIGTRAP || signal == SIGSTOP) {
      signal = 0;  // an event of ptrace, or a new thread
    }
    ::ptrace(PTRACE_SYSCALL, thread, nullptr, signal);
  }
}

}  // namespace

int crash_at_every_write(const CrashPoints& points) {
  for (int number = 1;; ++number) {
    points.prepare();
    const pid_t child = start_traced(points.work);
    int status = 0;
    if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) return -1;
    ::ptrace(PTRACE_SETOPTIONS, child, nullptr,
             PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL);
    ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    const Run run = run_until(child, number);
    const testing::ScopedTrace trace(
        __FILE__, __LINE__,
        run.ended ? "to its end" : "killed before its write number " + std::to_string(number));
    EXPECT_TRUE(run.ended || run.writes >= number);
    points.check();
    if (run.ended || run.writes < number) return number - 1;
    if (testing::Test::HasFailure()) return number;
  }
}

}  // namespace headroom::test
