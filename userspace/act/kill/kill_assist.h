// SPDX-License-Identifier: Apache-2.0
// kill_assist: lets killed processes, and the thread that frees their memory, run before all
// others.
//
// SCHED_RR at the lowest real-time priority (sched(7)) is not limited by cgroup weights, quotas or
// tiers, under which a BestEffort pod on a busy node waits for seconds. Killed threads never return
// to user space: they run only their own exit.
#pragma once

#include <sys/types.h>

namespace headroom::act {

// The process that a pidfd holds. Below 1 once it has been waited for: its pid may be reused then.
pid_t pid_of(int pidfd);

// Every thread of a process that has been sent SIGKILL. False where none could be: it has ended, we
// lack CAP_SYS_NICE, or the kernel gives real-time to the root cgroup alone (RT_GROUP_SCHED).
bool raise_to_realtime(int pidfd);

// The calling thread; what it starts is not boosted. False as above.
bool raise_this_thread_to_realtime();

}  // namespace headroom::act
