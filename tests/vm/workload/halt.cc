// SPDX-License-Identifier: Apache-2.0
// halt: keeps one thread of a process from running, for a while; its other threads go on.
//
//   halt TID SECONDS
//
// A stand-in for a loop that hangs. (SIGSTOP would stop the whole process.)
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: halt TID SECONDS\n");
    return 2;
  }
  const auto thread = static_cast<pid_t>(std::atoi(argv[1]));
  if (::ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0 ||
      ::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) != 0 ||
      ::waitpid(thread, nullptr, __WALL) != thread) {
    std::perror("halt");
    return 1;
  }
  ::sleep(static_cast<unsigned>(std::atoi(argv[2])));
  return ::ptrace(PTRACE_DETACH, thread, nullptr, nullptr) == 0 ? 0 : 1;
}
