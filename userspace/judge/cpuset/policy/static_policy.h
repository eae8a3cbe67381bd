// SPDX-License-Identifier: Apache-2.0
// StaticPolicy: the kubelet's static CPU manager on one machine, as functions from state to state
// (kubelet: cm/cpumanager). Checked once, at its making; it remembers nothing of what it gave.
#pragma once

#include "judge/cpuset/allocation/take_cpus.h"
#include "judge/cpuset/hints/cpu_hints.h"
#include "judge/cpuset/hints/hint_merge.h"
#include "judge/cpuset/policy/cpu_state.h"
#include "judge/cpuset/policy/policy_options.h"
#include "judge/memory/memory_policy.h"
#include "judge/resources/pod_level.h"

#include <headroom/cpuset.h>
#include <headroom/pod.h>
#include <headroom/topology.h>
#include <headroom/units.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <tl/expected.hpp>

namespace headroom {

// CpuRefusal: why a container does not get its exclusive CPUs (kubelet:
// cm/cpumanager/policy_static.go, cm/topologymanager).

// full-pcpus-only: not a multiple of a core, or too few CPUs on cores that nothing is reserved of.
struct SmtAlignmentError {
  int requested = 0;
  int cpus_per_core = 0;
  std::optional<int> available{};  // physical CPUs, where these are too few
  friend bool operator==(const SmtAlignmentError&, const SmtAlignmentError&) = default;
};

// The topology manager's policy does not admit what the hints merged to.
struct TopologyAffinityError {
  PodLevelMode pod = PodLevelMode::kOff;  // how a pod with resources of its own was to be served
  friend bool operator==(const TopologyAffinityError&, const TopologyAffinityError&) = default;
};

// Not the kubelet's: CPUs are free, but pods of the shared pool have requested them (pool_guard.h).
struct SharedPoolError {
  int requested = 0;
  MilliCpu left{};    // what the pool's pods would have
  MilliCpu needed{};  // what they requested
  friend bool operator==(const SharedPoolError&, const SharedPoolError&) = default;
};

// MemoryRefusal: the container's memory cannot be had, so it gets no CPUs either.
using CpuRefusal = std::variant<SmtAlignmentError, TopologyAffinityError, NotEnoughCpus,
                                SharedPoolError, EmptyPodPool, MemoryRefusal>;

// status.reason of the pod that fails, and what its message says.
std::string_view reason(const CpuRefusal& refusal);
std::string message(const CpuRefusal& refusal);
// "reason: message"
std::string reason_and_message(const CpuRefusal& refusal);

// How many exclusive CPUs a container, or a pod as a whole, asks for (kubelet:
// cm/cpumanager/policy_static.go).

// The whole number a container of a Guaranteed pod requests; 0, the shared pool, for any other.
// In a pod with resources of its own `mode` decides, and only is_guaranteed() containers count.
// Expects what the API server fills in (a limit alone is a request too) to be filled in.
int exclusive_cpus_requested(const Pod& pod, const Container& container, PodLevelMode mode);

// The pod whose containers request at least the exclusive CPUs that they had at their admission: a
// resize takes them none of these (kubelet: KEP 5554). Absent: they do anyway, or the pod has a
// pool, which no resize changes.
std::optional<Pod> with_admitted_cpus(const Pod& pod, const CpuState& state, PodLevelMode mode);

// The most the pod has at once: apps and sidecars, or an init container beside the sidecars started
// before it. If it gets a pool, the size of the pool.
int exclusive_cpus_requested(const Pod& pod, PodLevelMode mode);

struct CpuReservation {
  int count = 0;                 // system + kube reserved
  std::optional<CpuSet> cpus{};  // reservedSystemCPUs: these, and their number is the count
  MilliCpu amount{};             // what the count was rounded up from; 0: the count itself
};
// Whole CPUs: 1100m is two.
CpuReservation reservation_of(MilliCpu system_and_kube);

struct StaticPolicyConfig {
  Topology topology;
  CpuPolicyOptions options{};
  CpuReservation reservation{};
  TopologyRules topology_rules{};
  DeviceNodes devices{};
};

// What makes a state one that this policy cannot go on from.
struct StateFault {
  enum class Kind : std::uint8_t {
    kEmptyDefault,     // although something is assigned
    kReservedMissing,  // of the default set
    kReservedShared,   // in the default set, under strict-cpu-reservation
    kOverlap,          // assigned, and in the default set
    kOtherCpus,        // not the CPUs of this machine
  };
  Kind kind;
  std::string what;  // the kubelet's words
};

class StaticPolicy {
 public:
  // Everything that is wrong with the configuration, not the first thing.
  static tl::expected<StaticPolicy, PolicyErrors> of(StaticPolicyConfig config);

  const StaticPolicyConfig& config() const { return config_; }
  const Topology& topology() const { return config_.topology; }
  const CpuSet& reserved() const { return reserved_; }
  PodLevelMode pod_level_mode() const { return config_.topology_rules.pod_level_mode(); }

  // Nothing assigned yet.
  CpuState initial() const { return {.default_set = managed_cpus()}; }
  // Empty: go on. An empty state has none; it stands for initial().
  std::vector<StateFault> find_faults(const CpuState& state) const;

  // What one container hints at, or the pod as a whole. None where it wants no exclusive CPUs.
  ProviderHints hints(const CpuState& state, const Pod& pod, const Container& container) const;
  ProviderHints hints(const CpuState& state, const Pod& pod) const;

  // The state in which the container has its CPUs: the same one if it has them already, or wants
  // none. `affinity` is what the topology manager merged; absent: anywhere.
  tl::expected<CpuState, CpuRefusal> allocate(CpuState state, const Pod& pod,
                                              const Container& container,
                                              std::optional<NodeSet> affinity) const;

  // The same for a pod that gets a pool (has_pod_pool()): the state in which the pod has it, and
  // each container its part. A pod that has its pool keeps it (kubelet: AllocatePod).
  tl::expected<CpuState, CpuRefusal> allocate_pod(CpuState state, const Pod& pod,
                                                  std::optional<NodeSet> affinity) const;

 private:
  explicit StaticPolicy(StaticPolicyConfig config) : config_(std::move(config)) {}

  std::optional<std::string> reserve();
  CpuSet managed_cpus() const;  // what default set and assignments make together
  // A state may contain CPUs that this machine has lost: they are never assigned.
  CpuSet on_this_machine(const CpuSet& cpus) const { return cpus & topology().cpus(); }
  CpuSet available(const CpuState& state) const {
    return on_this_machine(state.default_set) - reserved_;
  }
  std::optional<CpuRefusal> check_smt_alignment(const CpuSet& pool, int count) const;
  TakeResult take_with_affinity(const CpuSet& pool, int count,
                                std::optional<NodeSet> affinity) const;
  CpuSet cpus_of_affinity(std::optional<NodeSet> affinity) const;
  ProviderHints hints_for(int count, CpuSet available, const CpuSet& reusable) const;
  ProviderHints pool_hints(const CpuState& state, const Pod& pod, int count) const;
  std::optional<EmptyPodPool> find_empty_pod_pool(const Pod& pod, int count) const;
  tl::expected<ContainerCpus, CpuRefusal> divide(const CpuSet& pool, const Pod& pod) const;

  StaticPolicyConfig config_;
  CpuSet reserved_;
  CpuSet reserved_cores_;  // with their SMT siblings
};

}  // namespace headroom
