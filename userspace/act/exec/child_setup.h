// SPDX-License-Identifier: Apache-2.0
// What happens between fork() and exec(). All that needs memory is made ready before the fork: of a
// process with threads the child may call only what is safe in a signal handler.
#pragma once

#include "act/exec/child_process.h"

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace headroom::act {

struct Credentials {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;
  // Capability sets, one bit each, as in /proc/PID/status.
  std::uint64_t inheritable = 0;
  std::uint64_t permitted = 0;
  std::uint64_t effective = 0;
  std::uint64_t bounding = 0;
  std::uint64_t ambient = 0;
};

struct ChildSetup {
  const Command* command = nullptr;
  std::vector<std::string> candidates;  // paths to try
  std::vector<char*> argv;
  std::vector<std::string> environment;  // of the process it runs beside
  std::vector<char*> envp;
  Fd target;     // pidfd
  Fd directory;  // its working directory
  Credentials credentials;
};

Result<ChildSetup> prepare_child(const Command& command);

// In the child. Writes errno to `report` if the program cannot be started.
[[noreturn]] void exec_child(const ChildSetup& child_setup, int report);

}  // namespace headroom::act
