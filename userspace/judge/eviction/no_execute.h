// SPDX-License-Identifier: Apache-2.0
// NoExecute: pods leave a node whose taints they do not tolerate, at once or when their
// tolerationSeconds are over (KUBELET.md 8).
#pragma once

#include <headroom/judge.h>

namespace headroom {

// Whether a pod is ours to send away. A static one stays as long as its file; of one known from its
// cgroup alone we cannot tell what it tolerates, and unknown never evicts.
bool is_evictable_by_taint(const Pod& pod);

// Whether the pod in this cgroup would have to go now.
bool is_evicted_by_taint(const Policy& policy, const Pod& pod, CgroupId cgroup,
                         const History& history, Instant at);

// Keeps, starts and cancels the timers of every pod, and decides about those whose time is up.
// Needs a snapshot with cgroups, and the victims of this round in verdict.after.
void apply_taints(const Policy& policy, const Snapshot& snapshot, const History& before,
                  Verdict& verdict);

// Whether a timer has run out since then: from the node alone nobody can be sent away.
bool taint_timer_due(const History& before, Instant at);

// When the next one does; absent: none runs. Those that have run out wait for nothing.
std::optional<Instant> next_taint_timer(const History& history, Instant at);

}  // namespace headroom
