// SPDX-License-Identifier: Apache-2.0
// Repacking: finds a better assignment than the one that resulted from pods coming and going.
//
// The static policy never moves a container, so what ended pods leave free stays fragmented: a
// container that came to a full machine spans two NUMA nodes long after one of them has room again.
// Every assignment proposed here is one that the policy itself makes; the best packed of those that
// were looked at is chosen, and among equals the one that moves the fewest CPUs.
#pragma once

#include "judge/cpuset/assign_cpus.h"
#include "judge/cpuset/cpu_admission.h"
#include "judge/cpuset/policy/cpu_state.h"
#include "judge/cpuset/policy/static_policy.h"

#include <headroom/cpuset.h>
#include <headroom/pod.h>

#include <span>
#include <string>
#include <vector>

namespace headroom {

// What is gained, and what a gain is measured by, the weightiest first.
struct PackingScore {
  int unsatisfied_containers = 0;  // that want exclusive CPUs and have fewer than they want
  CpuSpread span{};                // of each container, added up
  int free_cores = 0;              // whole, and free to be given out
  int free_on_one_node = 0;        // CPUs, on the NUMA node that has most of them free
  // Containers with CPUs away from a device that their pod names; weightier than all spans.
  int far_from_devices = 0;
  friend bool operator==(const PackingScore&, const PackingScore&) = default;
};

struct CpuMove {
  std::string pod;  // uid
  std::string container;
  CpuSet from;  // empty: it shared, and is served now
  CpuSet to;
};

struct RepackPlan {
  CpuState state;              // as it was, where there is nothing to gain
  std::vector<CpuMove> moves;  // by pod and container
  PackingScore before, after;
  // CPUs that containers run on after it and did not before.
  int moved_cpus() const;
};

// Three searches are made: from the current assignment, and with every container placed again, in
// two orders. Each looks at no more assignments than this.
inline constexpr int kMaxRepackTries = 600;

// `pods` may be moved, in the order they came; other containers keep their CPUs, and so do pods
// that have a pool (has_pod_pool()). A container that has all the CPUs it requests has as many
// afterwards, and the shared pool loses none except to containers that were refused before, and to
// them only what `pool` allows. Under distribute-cpus-across-cores, many cores are not a fault.
RepackPlan repack(const StaticPolicy& policy, const CpuState& state,
                  std::span<const Pod* const> pods, const SharedPoolOptions& pool = {});

}  // namespace headroom
