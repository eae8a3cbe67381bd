// SPDX-License-Identifier: Apache-2.0
// Boost: the dying, and who takes their memory from them, run before everybody else.
//
// SCHED_RR at the lowest real-time priority (sched(7)): no weight, quota or tier of cgroups holds
// it back, where a BestEffort pod among busy ones waits for seconds. The threads of the killed
// return to user space no more; what they run is their own exit.
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
