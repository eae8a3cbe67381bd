// SPDX-License-Identifier: Apache-2.0
// What /proc says of processes and threads: the fields of /proc/PID/stat that headroom reads, and
// the CPU time of each thread.
#pragma once

#include <headroom/eviction_unit.h>
#include <headroom/units.h>

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace headroom::report {

// The CPU time of the daemon's threads, by the name of each.

struct ThreadCpuTime {
  std::string part;  // loop, http, dbus, audit, cpus; other: whatever is not one of these
  Duration cpu{0};
};

// Gives the calling thread the name its part is known by, "hr-" and `part`.
void set_thread_name(const char* part);

// The CPU time so far of all threads of this process; empty if /proc cannot be read.
std::vector<ThreadCpuTime> cpu_time_by_thread();

}  // namespace headroom::report

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
