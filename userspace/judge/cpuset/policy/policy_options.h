// SPDX-License-Identifier: Apache-2.0
// Options of the static CPU policy (cpuManagerPolicyOptions; kubelet:
// cm/cpumanager/policy_options.go).
#pragma once

#include "judge/cpuset/allocation/take_cpus.h"
#include "judge/cpuset/hints/hint_merge.h"

#include <headroom/topology.h>

#include <map>
#include <string>
#include <vector>

#include <tl/expected.hpp>

namespace headroom {

struct CpuPolicyOptions {
  bool full_pcpus_only = false;
  bool distribute_across_numa = false;
  bool align_by_socket = false;
  bool distribute_across_cores = false;
  bool strict_reservation = false;
  bool prefer_align_by_uncore = false;
  friend bool operator==(const CpuPolicyOptions&, const CpuPolicyOptions&) = default;
};

// The kubelet's feature gates CPUManagerPolicyAlphaOptions and CPUManagerPolicyBetaOptions.
struct CpuOptionGates {
  bool alpha = false;
  bool beta = true;
};

// Everything that is wrong, not the first thing: in the kubelet's words.
using PolicyErrors = std::vector<std::string>;

// Stages are those of the newest kubelet, 1.37: what it takes without a gate, so do we.
tl::expected<CpuPolicyOptions, PolicyErrors> parse_cpu_options(
    const std::map<std::string, std::string>& options, CpuOptionGates gates = {});

// Options that exclude one another, the topology manager's policy, or this machine.
PolicyErrors conflicts(const CpuPolicyOptions& options, const Topology& topology,
                       const TopologyRules& rules);

TakeRules take_rules(const CpuPolicyOptions& options, const Topology& topology);

}  // namespace headroom
