// SPDX-License-Identifier: Apache-2.0
// The guard of the shared pool: nobody gets CPUs of its own that the pods in the pool requested.
//
// The kubelet gives the last free CPUs away whatever those who share have requested: before it, a
// scheduler has added up all requests. On a host without one, exclusive CPUs could take from pods
// what they asked for, down to the reserved CPUs; so whoever would leave the pool short is refused.
// A pod that comes to the pool later cannot be: then the pool is short, and that is told.
#pragma once

#include "judge/cpuset/cpu_admission.h"
#include "judge/cpuset/policy/cpu_state.h"
#include "judge/cpuset/policy/static_policy.h"
#include "judge/cpuset/shared_pool.h"

#include <headroom/cpuset.h>
#include <headroom/pod.h>
#include <headroom/units.h>

#include <tl/expected.hpp>

namespace headroom {

// The default set less what is reserved, as node allocatable has it: 1100m and not the two CPUs
// these are rounded up to. So nobody is refused here whose request fits into what is allocatable,
// unless init containers still hold CPUs that their pod's request does not count any more.
MilliCpu pool_size(const StaticPolicy& policy, const CpuState& state);

// The request of those of the pod's containers that have no CPUs of their own, with its overhead; 0
// where all have.
MilliCpu shared_pool_request(const Pod& pod, const CpuState& state);

// admit(), but for a pod that would take CPUs which all others in the pool need: `requested`. It
// may have as many as it `had` in any case.
tl::expected<CpuState, ContainerRefusal> admit_with_pool_guard(const StaticPolicy& policy,
                                                               const CpuState& state,
                                                               const Pod& pod, MilliCpu requested,
                                                               const CpuSet& previous = {});

}  // namespace headroom
