// SPDX-License-Identifier: Apache-2.0
// A container that is to have another number of CPUs than it has, by a resize or because one was
// unplugged, keeps of them what it may: its tasks, and what they have in caches, are there.
#pragma once

#include "judge/cpuset/policy/cpu_state.h"
#include "judge/cpuset/policy/static_policy.h"

#include <headroom/pod.h>

namespace headroom {

// `assigned` is what the policy made of `before`, in which the pod had none: as if it were new. The
// same with its containers on CPUs they had before, `previous`, which are free in `before`, as far
// as these are as many and lie as near together: on no more NUMA nodes, sockets and, under
// full-pcpus-only, cores; with `same_nodes` on none that the policy did not choose.
CpuState keep_current_cpus(const StaticPolicy& policy, const CpuState& before, CpuState assigned,
                           const Pod& pod, const ContainerCpus& previous, bool same_nodes);

}  // namespace headroom
