// SPDX-License-Identifier: Apache-2.0
// Processes: a signal to every process of a cgroup and of those below it.
#pragma once

#include <headroom/result.h>

#include <cstddef>

namespace headroom::act {

// Signals each process once, through a pidfd whose membership is checked again after it was
// opened, so that a recycled pid is never hit. Returns how many were signalled.
Result<std::size_t> signal_processes(int cgroup_directory, int signal);

}  // namespace headroom::act
