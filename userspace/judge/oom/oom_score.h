// SPDX-License-Identifier: Apache-2.0
// oom_score_adj: which processes the kernel's OOM killer should spare (kubelet: qos/policy.go).
#pragma once

#include <headroom/pod.h>
#include <headroom/units.h>

namespace headroom {

inline constexpr int kGuaranteedOomScore = -997;
inline constexpr int kBestEffortOomScore = 1000;
inline constexpr int kSandboxOomScore = -998;  // set by the runtime, by convention

// Of one of the pod's containers, set when it is created and kept. `memory_capacity` is the
// machine's memory, above zero; allocatable does not count.
int oom_score_adj(const Pod& pod, const Container& container, Bytes memory_capacity);

}  // namespace headroom
