// SPDX-License-Identifier: Apache-2.0
// In place: a container that is to have another number of CPUs than it has, by a resize or because
// one was unplugged, keeps of them what it may: its tasks, and what they have in caches, are there.
#pragma once

#include "judge/cpuset/policy/cpu_state.h"
#include "judge/cpuset/policy/static_policy.h"

#include <headroom/pod.h>

namespace headroom {

// `fresh` is what the policy made of `before`, in which the pod had none: as if it were new. The
// same with its containers on CPUs they `had`, which are free in `before`, as far as these are as
// many and lie as near together: on no more NUMA nodes, sockets and, under full-pcpus-only, cores,
// and on none that the policy did not choose, where the pod names a device.
CpuState update_cpu_worker(const StaticPolicy& policy, const CpuState& before, CpuState assigned,
                           const Pod& pod, const ContainerCpus& previous);

}  // namespace headroom
