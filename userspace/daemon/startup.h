// SPDX-License-Identifier: Apache-2.0
// What headroomd does before its first turn: it loads the configuration as it applies to this
// machine, with every error in it, and checks that this host can run it.
#pragma once

#include "config/load/load.h"
#include "judge/allocatable/amounts.h"
#include "observe/cgroup/cgroup_source.h"

#include <headroom/policy.h>
#include <headroom/result.h>

#include <cstdint>
#include <filesystem>
#include <functional>

namespace headroom::daemon {

// Checks and sets up what this process may do here, before anything is started.

// The cgroup v2 mount, or the reason why the daemon cannot run in this mode, in one line.
Result<observe::CgroupRoot> preflight(Mode mode);

// Sets SCHED_FIFO at the second lowest priority for the calling thread, as the unit does; needed in
// a container, and when the daemon is started by hand. Threads and processes that it starts later
// are scheduled normally. False, with errno: not permitted.
bool request_realtime_scheduling();

// Raises the descriptor limit, lets malloc return large blocks, locks memory, and lowers the OOM
// score. A refusal is logged, and the daemon runs without it.
void lock_memory_and_limits();

enum class LoadReason : std::uint8_t { kStart, kReload };

// Errors that come only from a detected kubelet's configuration do not prevent the start: they are
// logged as warnings, and the other settings are used. On a reload with such errors the earlier
// values stay in force. `run_dir`: LoadContext::run_dir.
config::LoadResult load_config(const config::CommandLine& line, LoadReason occasion,
                               const std::function<Amounts(const config::Config&)>& capacity,
                               const std::filesystem::path& run_dir = {});

}  // namespace headroom::daemon
