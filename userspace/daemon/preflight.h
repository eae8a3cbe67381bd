// SPDX-License-Identifier: Apache-2.0
// Checks and sets up what this process may do here, before anything is started.
#pragma once

#include "observe/cgroup/cgroup_root.h"

#include <headroom/policy.h>
#include <headroom/result.h>

namespace headroom::daemon {

// The cgroup v2 mount, or why the daemon cannot run in this mode, in one line.
Result<observe::CgroupRoot> preflight(Mode mode);

// Has the calling thread scheduled before all others: SCHED_FIFO at the lowest priority but one, as
// the unit has it; for a container, and a daemon started by hand. Threads and processes that it
// starts later are scheduled as all others are. False, with errno: not permitted.
bool request_realtime_scheduling();

// Takes what a node's guardian needs and may be refused: descriptors, locked memory, the OOM
// score. A refusal is logged; nothing depends on it but how well we survive.
void lock_memory_and_limits();

}  // namespace headroom::daemon
