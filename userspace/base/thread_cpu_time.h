// SPDX-License-Identifier: Apache-2.0
// The CPU time of the daemon's threads, by the name of each.
#pragma once

#include <headroom/units.h>

#include <string>
#include <vector>

namespace headroom::report {

struct ThreadCpuTime {
  std::string part;  // loop, http, dbus, audit, cpus; other: whatever is not one of these
  Duration cpu{0};
};

// Gives the calling thread the name its part is known by, "hr-" and `part`.
void set_thread_name(const char* part);

// The CPU time so far of all threads of this process; empty if /proc cannot be read.
std::vector<ThreadCpuTime> cpu_time_by_thread();

}  // namespace headroom::report
