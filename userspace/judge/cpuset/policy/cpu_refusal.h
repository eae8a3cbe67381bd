// SPDX-License-Identifier: Apache-2.0
// CpuRefusal: why a container does not get its exclusive CPUs (kubelet:
// cm/cpumanager/policy_static.go, cm/topologymanager).
#pragma once

#include "judge/cpuset/allocation/take_cpus.h"

#include <headroom/units.h>

#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace headroom {

// full-pcpus-only: not a multiple of a core, or too few CPUs on cores that nothing is reserved of.
struct SmtAlignmentError {
  int requested = 0;
  int cpus_per_core = 0;
  std::optional<int> available{};  // physical CPUs, where these are too few
  friend bool operator==(const SmtAlignmentError&, const SmtAlignmentError&) = default;
};

// The topology manager's policy does not admit what the hints merged to.
struct TopologyAffinityError {
  friend bool operator==(const TopologyAffinityError&, const TopologyAffinityError&) = default;
};

// Not the kubelet's: CPUs are free, but pods of the shared pool have requested them (pool_guard.h).
struct SharedPoolError {
  int requested = 0;
  MilliCpu left{};    // what the pool's pods would have
  MilliCpu needed{};  // what they requested
  friend bool operator==(const SharedPoolError&, const SharedPoolError&) = default;
};

using CpuRefusal =
    std::variant<SmtAlignmentError, TopologyAffinityError, NotEnoughCpus, SharedPoolError>;

// status.reason of the pod that fails, and what its message says.
std::string_view reason(const CpuRefusal& refusal);
std::string message(const CpuRefusal& refusal);

}  // namespace headroom
