// SPDX-License-Identifier: Apache-2.0
// The processes of a cgroup and of the cgroups below it.
#pragma once

#include "base/file_io.h"

#include <headroom/result.h>

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <vector>

namespace headroom {

// The cgroup's own directory, then every one below it. A descriptor is valid during its visit.
void for_each_descendant(int cgroup_directory, const std::function<void(int directory)>& visit);

// The cgroup's own processes, as of now.
Result<std::vector<pid_t>> pids_of(int cgroup_directory);

// A pidfd for each process. Membership is checked again after it was opened, so none refers to a
// recycled pid.
std::vector<Fd> open_pidfds(int cgroup_directory);

// Signals each process once. Returns how many were signalled.
Result<std::size_t> signal_processes(int cgroup_directory, int signal);

}  // namespace headroom
