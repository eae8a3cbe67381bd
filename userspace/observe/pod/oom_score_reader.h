// SPDX-License-Identifier: Apache-2.0
// What the oom_score_adj of its processes reveals about a pod that is not described yet.
#pragma once

#include "observe/cgroup/cgroup_inventory.h"

#include <string>

namespace headroom::observe {

// True if a process directly in the cgroup has the oom_score_adj that the kubelet gives to
// Guaranteed and node-critical pods (-997), or a lower one. Not counted: -998, which runtimes give
// to the pause process of every pod, and a container's monitor (conmon: -1000). `proc`: "/proc".
bool has_protected_process(const KnownCgroup& cgroup, const std::string& proc);

}  // namespace headroom::observe
