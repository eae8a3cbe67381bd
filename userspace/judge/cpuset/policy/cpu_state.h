// SPDX-License-Identifier: Apache-2.0
// CpuState: which container has which CPUs. The kubelet's cpu_manager_state as a value (kubelet:
// cm/cpumanager/state).
#pragma once

#include <headroom/cpuset.h>
#include <headroom/pod.h>

#include <cstdint>
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
  // CPUs of containers: exclusive, or, in a pod that has a pool, also the rest of the pool, which
  // the pod's other containers share.
  PodCpus entries{};
  // The pools of pods with resources of their own, by uid (gate PodLevelResourceManagers). What no
  // container has of a pool is nevertheless the pod's.
  std::map<std::string, CpuSet, std::less<>> pod_entries{};
  // How many exclusive CPUs a container had at its admission, where it has another number now.
  PodCpuCounts admitted{};

  friend bool operator==(const CpuState&, const CpuState&) = default;
};

// Whose a container's CPUs are. The kubelet's ResourceIsolationLevel.
enum class CpuIsolation : std::uint8_t {
  kHost,       // it runs in the shared pool of the host
  kPod,        // it shares the rest of its pod's pool
  kContainer,  // they are its own
};
CpuIsolation cpu_isolation(const CpuState& state, const Pod& pod, const Container& container);

// Null: it runs in the shared pool of the host.
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

// The container's CPUs go back to the shared pool, but for those another of its pod still has. A
// pod's pool goes back as a whole, with the last of its containers.
[[nodiscard]] CpuState release_cpus(CpuState state, std::string_view pod,
                                    std::string_view container);

// Without whatever belongs to a pod or container that is not among `active`.
[[nodiscard]] CpuState remove_stale(CpuState state, std::span<const Pod* const> active);

}  // namespace headroom
