// SPDX-License-Identifier: Apache-2.0
// CpuState: which container has which CPUs. The kubelet's cpu_manager_state as a value (kubelet:
// cm/cpumanager/state).
#pragma once

#include <headroom/cpuset.h>
#include <headroom/pod.h>

#include <map>
#include <span>
#include <string>
#include <string_view>

namespace headroom {

using ContainerCpus = std::map<std::string, CpuSet, std::less<>>;   // by container name
using PodCpus = std::map<std::string, ContainerCpus, std::less<>>;  // by pod uid
using ContainerCpuCounts = std::map<std::string, int, std::less<>>;
using PodCpuCounts = std::map<std::string, ContainerCpuCounts, std::less<>>;

struct CpuState {
  CpuSet default_set{};  // the shared pool: everyone without exclusive CPUs runs here
  PodCpus entries{};     // exclusive CPUs
  // CPUs of pods as a whole (the kubelet's PodLevelResourceManagers): kept as read, never given
  // out.
  std::map<std::string, CpuSet, std::less<>> pod_entries{};
  // How many exclusive CPUs a container had at its admission, where it has another number now.
  PodCpuCounts admitted{};

  friend bool operator==(const CpuState&, const CpuState&) = default;
};

// Null: it has none of its own.
const CpuSet* exclusive_cpus(const CpuState& state, std::string_view pod,
                             std::string_view container);

// How many exclusive CPUs the container had at its admission. 0: it has none.
int cpus_at_admission(const CpuState& state, std::string_view pod, std::string_view container);

// The numbers in `state` of containers that have another number in `next`.
PodCpuCounts changed_counts(const CpuState& state, const CpuState& next);

// Every CPU that is some container's or pod's own.
CpuSet assigned_cpus(const CpuState& state);

// CPUs that the pod's next container may take over: those of its ordinary init containers, which
// have finished by then, less those its app containers and sidecars hold. The kubelet remembers
// this for one pod only, until the next one or a restart; the state has it all.
CpuSet reusable_cpus(const CpuState& state, const Pod& pod);

// The container's CPUs go back to the shared pool, but for those another of its pod still has.
[[nodiscard]] CpuState release_cpus(CpuState state, std::string_view pod,
                                    std::string_view container);

// Without whatever belongs to a pod or container that is not among `active`.
[[nodiscard]] CpuState remove_stale(CpuState state, std::span<const Pod* const> active);

}  // namespace headroom
