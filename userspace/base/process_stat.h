// SPDX-License-Identifier: Apache-2.0
// The fields of /proc/PID/stat that headroom reads.
#pragma once

#include <headroom/eviction_unit.h>

#include <sys/types.h>

#include <optional>

namespace headroom {

struct ProcessStat {
  ProcessIdentity name;
  std::array<char, 16> comm{};
  std::int64_t resident_pages = 0;
  bool zombie = false;  // its memory is gone already
};

// Nothing: it is gone, or not to be seen. Allocates nothing.
std::optional<ProcessStat> process_stat(pid_t pid);

// The process of this name, held by a pidfd; -1: it is gone. Allocates nothing.
int open_process(ProcessIdentity name);

}  // namespace headroom
