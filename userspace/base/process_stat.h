// SPDX-License-Identifier: Apache-2.0
// Processes and threads by /proc and cgroup files: the fields of /proc/PID/stat that
// headroom reads, the CPU time of each thread, the processes of a cgroup.
#pragma once

#include "base/file_io.h"

#include <headroom/eviction_unit.h>
#include <headroom/result.h>
#include <headroom/units.h>

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace headroom {

// The processes of a cgroup and of the cgroups below it.

// Visits the cgroup's own directory, then every one below it. The descriptor is valid during the
// visit.
void for_each_descendant(int cgroup_directory, const std::function<void(int directory)>& visit);

// The current processes of the cgroup itself.
Result<std::vector<pid_t>> pids_of(int cgroup_directory);

// A pidfd for each process. Membership is checked again after opening, so no pidfd refers to a
// reused pid.
std::vector<Fd> open_pidfds(int cgroup_directory);

// Signals each process once. Returns how many were signalled.
Result<std::size_t> signal_processes(int cgroup_directory, int signal);

}  // namespace headroom

namespace headroom::report {

// The CPU time of the daemon's threads, by the name of each.

struct ThreadCpuTime {
  std::string part;  // loop, http, dbus, audit, cpus; other: all other threads
  Duration cpu{0};
};

// Names the calling thread "hr-" + `part`.
void set_thread_name(const char* part);

// The CPU time so far of all threads of this process; empty if /proc cannot be read whole. No
// part's time decreases from call to call, nor is it absent after a thread has ended: they are
// counters. What a thread used between the last call and its end is in "other".
std::vector<ThreadCpuTime> cpu_time_by_thread();

}  // namespace headroom::report

namespace headroom {

struct ProcessStat {
  ProcessIdentity name;
  std::array<char, 16> comm{};
  std::int64_t resident_pages = 0;
  bool zombie = false;  // it has released its memory
};

// Absent: the process has ended or cannot be read. Allocates nothing.
std::optional<ProcessStat> process_stat(pid_t pid);

// Start times have a resolution of one clock tick (10 ms); a service manager takes longer than that
// to start a new process.
bool started_before(Instant instant, const ProcessStat& stat);

// A pidfd of the process with this identity; -1: it has ended. Allocates nothing.
int open_process(ProcessIdentity name);

}  // namespace headroom
