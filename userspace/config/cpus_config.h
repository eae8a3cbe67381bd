// SPDX-License-Identifier: Apache-2.0
// CpusConfig: the settings of CPU pinning: those of the kubelet's CPU and topology managers, and
// headroom.cpus.
#pragma once

#include "judge/cpuset/hints/hint_merge.h"
#include "judge/cpuset/policy/policy_options.h"

#include <headroom/cpuset.h>
#include <headroom/units.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>

namespace headroom::config {

struct CpusConfig {
  enum class Mode : std::uint8_t { kOff, kObserve, kEnforce };
  enum class Policy : std::uint8_t { kNone, kStatic };
  enum class Partition : std::uint8_t { kMember, kIsolated };

  Mode mode = Mode::kOff;
  Policy policy = Policy::kNone;                             // cpuManagerPolicy
  CpuPolicyOptions options;                                  // cpuManagerPolicyOptions
  Duration reconcile_period = std::chrono::seconds(10);      // cpuManagerReconcilePeriod
  std::optional<CpuSet> reserved;                            // reservedSystemCPUs
  TopologyPolicy topology_policy = TopologyPolicy::kNone;    // topologyManagerPolicy
  TopologyScope topology_scope = TopologyScope::kContainer;  // topologyManagerScope
  bool prefer_closest_numa = false;                          // topologyManagerPolicyOptions
  std::filesystem::path state_file = "/var/lib/headroom/cpu_manager_state";  // stateFile
  bool exclude_isolated = false;                                             // excludeIsolated
  Partition partition = Partition::kMember;                                  // partition
  bool guard_shared_pool = true;                                             // guardSharedPool

  friend bool operator==(const CpusConfig&, const CpusConfig&) = default;
};

constexpr std::string_view name(CpusConfig::Mode mode) {
  switch (mode) {
    case CpusConfig::Mode::kOff:
      return "off";
    case CpusConfig::Mode::kObserve:
      return "observe";
    case CpusConfig::Mode::kEnforce:
      return "enforce";
  }
  return "";
}

constexpr std::string_view name(CpusConfig::Policy policy) {
  return policy == CpusConfig::Policy::kStatic ? "static" : "none";
}

}  // namespace headroom::config
