// SPDX-License-Identifier: Apache-2.0
#include "ctl/run/children.h"

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

// Read in a signal's handler; 0: nobody.
std::array<std::atomic<pid_t>, kMostChildren> alive{};

void pass_on(int signal) {
  for (const auto& child : alive)
    if (const pid_t id = child.load(); id > 0) ::kill(id, signal);
}

bool note(pid_t child) {
  for (auto& place : alive)
    if (pid_t nobody = 0; place.compare_exchange_strong(nobody, child)) return true;
  return false;
}

void forget(pid_t child) {
  for (auto& place : alive) {
    pid_t same = child;
    if (place.compare_exchange_strong(same, 0)) return;
  }
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  forget(child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

void pass_signals_on() {
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, &pass_on);
  std::signal(SIGHUP, &pass_on);
}

Result<pid_t> spawn(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (const std::string& word : words)
    argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return errno_failure("fork", errno);
  if (child == 0) {
    std::signal(SIGINT, SIG_DFL);
    ::execvp(argv[0], argv.data());
    std::fprintf(stderr, "headroomctl: run %s: %s\n", argv[0], std::strerror(errno));
    ::_exit(127);
  }
  if (note(child)) return child;
  ::kill(child, SIGTERM);
  wait_for(child);
  return failure("run " + words.front() + ": too many at once");
}

int wait_for(const std::vector<pid_t>& children) {
  int first = 0;
  for (const pid_t child : children)
    if (const int status = wait_for(child); first == 0) first = status;
  return first;
}

}  // namespace headroom::ctl
