// SPDX-License-Identifier: Apache-2.0
// Arranging: from what was known and who is there to who has which CPUs from now on.
//
// The kubelet refuses to start on a state that does not fit the machine or its configuration, and
// asks for the file to be deleted (KUBELET.md 5.7). Here whatever can stay stays, and only what
// cannot is given out anew: CPUs that are gone, reserved now, claimed twice, or not as many as are
// wanted.
#pragma once

#include "judge/cpuset/cpu_admission.h"
#include "judge/cpuset/policy/cpu_state.h"
#include "judge/cpuset/policy/static_policy.h"
#include "judge/cpuset/shared_pool.h"

#include <headroom/cpuset.h>
#include <headroom/pod.h>

#include <span>
#include <string>
#include <vector>

namespace headroom {

// What a container runs on, as its cgroup says.
struct RunningCpus {
  std::string pod;  // uid
  std::string container;
  CpuSet cpus;
};

struct PodRefusal {
  const Pod* pod = nullptr;
  ContainerRefusal why;
};

struct CpuAssignment {
  CpuState state;
  // Whose wish could not be granted: they run in the shared pool, or on what is left of theirs.
  std::vector<PodRefusal> refused;
  SharedPool pool;  // afterwards
};

// `active` in the order they came: the first to come is the first to be served. `running` is given
// when `known` may be wrong, at the start: a set that can only be an exclusive one (of the right
// size, and nobody else's) wins over what is known, and any of the right size over nothing, so that
// a running container keeps its CPUs.
// Who has CPUs keeps them whatever the pool is short of; `pool` only keeps others from getting any.
CpuAssignment assign_cpus(const StaticPolicy& policy, const CpuState& known,
                          std::span<const Pod* const> active,
                          std::span<const RunningCpus> running = {},
                          const SharedPoolOptions& pool = {});

// Where everybody runs who has no CPUs of his own. Under strict reservation the default set may be
// used up: then the reserved CPUs, for there must be some.
CpuSet shared_pool(const StaticPolicy& policy, const CpuState& state);

}  // namespace headroom
