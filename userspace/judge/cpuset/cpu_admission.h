// SPDX-License-Identifier: Apache-2.0
// Admission: all of a pod's containers get their CPUs and their memory, or none does (kubelet:
// cm/cpumanager/policy_static.go, cm/memorymanager/policy_static.go, cm/topologymanager).
#pragma once

#include "judge/cpuset/hints/hint_merge.h"
#include "judge/cpuset/policy/cpu_state.h"
#include "judge/cpuset/policy/static_policy.h"
#include "judge/memory/memory_policy.h"

#include <headroom/cpuset.h>
#include <headroom/pod.h>
#include <headroom/topology.h>
#include <headroom/units.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

namespace headroom {

struct ContainerRefusal {
  std::string container;  // empty: the pod as a whole
  CpuRefusal refusal;
};

// What providers other than the CPUs, the memory and the pod's devices hint at: for a container, or
// (null) for the pod as a whole.
using OtherHints = std::function<std::vector<ProviderHints>(const Container*)>;

// The managers of a machine, whose hints are merged. Null: of the policy none, which has no hints
// and assigns nothing.
struct ResourceManagers {
  const StaticPolicy* cpus = nullptr;
  const MemoryPolicy* memory = nullptr;
  TopologyRules rules{};
  const NumaMap* numa = nullptr;  // never null
};

struct ResourceState {
  CpuState cpus{};
  MemoryState memory{};
};

// Init containers first, in order, each under the hint of its own scope. The kubelet leaves what
// earlier containers got with a pod it then refuses, until its stale state is removed; here a
// refused pod leaves the state as it was.
tl::expected<ResourceState, ContainerRefusal> admit(const ResourceManagers& managers,
                                                    const ResourceState& state, const Pod& pod,
                                                    const OtherHints& others = nullptr);

// Of CPUs alone.
tl::expected<CpuState, ContainerRefusal> admit(const StaticPolicy& policy, const CpuState& state,
                                               const Pod& pod, const OtherHints& others = nullptr);

// The guard of the shared pool: no container gets exclusive CPUs that pods of the pool requested.
//
// The kubelet gives away the last free CPUs whatever the other pods have requested: before it, a
// scheduler has added up all requests. On a host without a scheduler, exclusive CPUs could take
// from pods what they requested, down to the reserved CPUs; so a container that would leave the
// pool too small is refused. A pod that joins the pool later cannot be refused: then the pool is
// too small, and that is reported.

// SharedPool: what the pods without CPUs of their own have together, against what they requested.

struct SharedPool {
  MilliCpu size{};       // without what is reserved
  MilliCpu requested{};  // by the pods in it
  bool is_short() const { return requested > size; }
  friend bool operator==(const SharedPool&, const SharedPool&) = default;
};

// What is asked of the pool beside the pods at hand.
struct SharedPoolOptions {
  MilliCpu requested{};  // by pods that are not among them
  bool guarded = false;
};

// The default set less what is reserved, as node allocatable computes it: 1100m, not the two CPUs
// that this is rounded up to. So no pod is refused whose request fits into allocatable, unless init
// containers still hold CPUs that their pod's request no longer counts.
MilliCpu pool_size(const StaticPolicy& policy, const CpuState& state);

// The request of those of the pod's containers that have no CPUs of their own, with its overhead; 0
// where all have.
MilliCpu shared_pool_request(const Pod& pod, const CpuState& state);

// Why a pod that was admitted is refused all the same: it would take CPUs which all others in the
// pool need: `requested`. It may have as many as it had in any case.
std::optional<ContainerRefusal> find_pool_refusal(const StaticPolicy& policy,
                                                  const CpuState& before, const CpuState& after,
                                                  const Pod& pod, MilliCpu requested,
                                                  const CpuSet& previous = {});

}  // namespace headroom
