// SPDX-License-Identifier: Apache-2.0
// Command: a program that runs outside of the loop, with a deadline and its own process group, and
// optionally low priority, a memory limit, another user, another cgroup, or the namespaces of a
// running process.
#pragma once

#include "base/file_io.h"

#include <headroom/result.h>
#include <headroom/units.h>

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

namespace headroom::act {

struct Command {
  std::vector<std::string> argv;  // argv[0] is a path, or a name to look for in PATH
  // nice 19, idle I/O, first choice of the kernel's OOM killer.
  bool in_background = false;
  std::uint64_t data_limit = 0;  // RLIMIT_DATA in bytes; 0: none
  int cgroup_procs = -1;         // joined before the program starts; -1: the daemon's cgroup
  // Runs with the namespaces, credentials, environment and directory of this process; 0: of the
  // caller, but as `user` and at most with the capabilities for files.
  pid_t target = 0;
  std::string user = {};  // without a target; "": the caller's
  int input = -1;         // standard input; -1: /dev/null
};

// A running command. It is killed if the object is destroyed before wait().
class Child {
 public:
  static Result<Child> start(const Command& command);
  ~Child();
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;

  // 0; or Outcome::kExitStatus | status, or an errno: ETIMEDOUT and ECANCELED after killing it.
  int wait(Instant deadline, Instant (*clock)(), const std::stop_token& stop);
  // The same; `cancelled` is asked ten times a second.
  int wait_unless(const std::function<bool()>& cancelled, Instant deadline, Instant (*clock)());

 private:
  Child(pid_t pid, Fd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
  void kill();
  int reap();

  pid_t pid_ = 0;
  Fd pidfd_;
};

}  // namespace headroom::act
