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

// The cgroup v2 mount, or why the daemon cannot run in this mode, in one line.
Result<observe::CgroupRoot> preflight(Mode mode);

// Has the calling thread scheduled before all others: SCHED_FIFO at the lowest priority but one, as
// the unit has it; for a container, and a daemon started by hand. Threads and processes that it
// starts later are scheduled as all others are. False, with errno: not permitted.
bool request_realtime_scheduling();

// Takes what a node's guardian needs and may be refused: descriptors, locked memory, the OOM
// score. A refusal is logged; nothing depends on it but how well we survive.
void lock_memory_and_limits();

enum class LoadReason : std::uint8_t { kStart, kReload };

// A kubelet that was found running, or what it says of itself, is no reason not to run: what is
// wrong for that alone is logged as a warning, and the rest counts. On a reload what was in force
// stays rather than what the kubelet says is forgotten.
// `run_dir`: LoadContext::run_dir.
config::LoadResult load_config(const config::CommandLine& line, LoadReason occasion,
                               const std::function<Amounts(const config::Config&)>& capacity,
                               const std::filesystem::path& run_dir = {});

}  // namespace headroom::daemon
