// SPDX-License-Identifier: Apache-2.0
// Admission: all of a pod's containers get their CPUs and their memory, or none does (kubelet:
// cm/cpumanager/policy_static.go, cm/memorymanager/policy_static.go, cm/topologymanager).
#pragma once

#include "judge/cpuset/hints/hint_merge.h"
#include "judge/cpuset/policy/cpu_state.h"
#include "judge/cpuset/policy/static_policy.h"
#include "judge/memory/memory_policy.h"

#include <headroom/pod.h>
#include <headroom/topology.h>

#include <functional>
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

}  // namespace headroom
