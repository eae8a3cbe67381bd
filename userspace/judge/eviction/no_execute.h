// SPDX-License-Identifier: Apache-2.0
// NoExecute: pods leave a node whose taints they do not tolerate, at once or when their
// tolerationSeconds are over (kubelet: lifecycle and preemption).
#pragma once

#include <headroom/judge.h>

namespace headroom {

// Whether headroom may evict the pod for a taint. A static pod stays as long as its file; the
// tolerations of a pod known only from its cgroup are unknown, and unknown never evicts.
bool is_evictable_by_taint(const Pod& pod);

// Whether the pod in this cgroup would have to go now.
bool is_evicted_by_taint(const Policy& policy, const Pod& pod, CgroupId cgroup,
                         const History& history, Instant at);

// Keeps, starts and cancels the timers of every pod, and decides about pods whose time is up. Needs
// a snapshot with cgroups, and the victims of this turn in verdict.after.
void apply_taints(const Policy& policy, const Snapshot& snapshot, const History& before,
                  Verdict& verdict);

// Whether a timer has run out since then: the node's readings alone cannot evict a pod.
bool taint_timer_due(const History& before, Instant at);

// When the next one does; absent: none runs. Those that have run out wait for nothing.
std::optional<Instant> next_taint_timer(const History& history, Instant at);

}  // namespace headroom
