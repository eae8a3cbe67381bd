// SPDX-License-Identifier: Apache-2.0
#include "ctl/run/child_processes.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace headroom::ctl {
namespace {

// The signal handler reads this; 0: unused entry.
std::array<std::atomic<pid_t>, kMaxChildren> running_children{};

void forward_signal(int signal) {
  for (const auto& child : running_children)
    if (const pid_t id = child.load(); id > 0) ::kill(id, signal);
}

bool add_running_child(pid_t child) {
  for (auto& slot : running_children)
    if (pid_t empty = 0; slot.compare_exchange_strong(empty, child)) return true;
  return false;
}

void remove_running_child(pid_t child) {
  for (auto& slot : running_children) {
    pid_t expected = child;
    if (slot.compare_exchange_strong(expected, 0)) return;
  }
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  remove_running_child(child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

void forward_signals() {
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, &forward_signal);
  std::signal(SIGHUP, &forward_signal);
}

Result<pid_t> spawn(const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments)
    argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return errno_failure("fork", errno);
  if (child == 0) {
    std::signal(SIGINT, SIG_DFL);
    ::execvp(argv[0], argv.data());
    std::fprintf(stderr, "headroomctl: run %s: %s\n", argv[0], std::strerror(errno));
    ::_exit(127);
  }
  if (add_running_child(child)) return child;
  ::kill(child, SIGTERM);
  wait_for(child);
  return failure("run " + arguments.front() + ": too many child processes");
}

int wait_for(const std::vector<pid_t>& children) {
  int first = 0;
  for (const pid_t child : children)
    if (const int status = wait_for(child); first == 0) first = status;
  return first;
}

}  // namespace headroom::ctl
