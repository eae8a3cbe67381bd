// SPDX-License-Identifier: Apache-2.0
// PodSwapRequests: which cgroups get another memory.swap.high or memory.zswap.writeback until the
// next sweep: those of the pods that plan_pod_swap() names, and for zswap all below them.
#pragma once

#include "act/limits/cgroup_overrides.h"
#include "judge/limits/pod_swap_plan.h"
#include "report/view/node_view.h"

#include <headroom/snapshot.h>
#include <headroom/units.h>

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

namespace headroom::daemon {

struct PodSwapRequest {
  struct Cgroup {
    CgroupId id, pod;  // the same for a pod's own cgroup
    std::string path;  // below the cgroup root
    act::OverriddenFile file = act::OverriddenFile::kSwapHigh;
    std::uint64_t value = 0;
    bool is_slowed = false;  // its swap is at memory.swap.high
    friend bool operator==(const Cgroup&, const Cgroup&) = default;
  };
  std::vector<Cgroup> cgroups;  // a pod is before what is below it
};

class PodSwapRequests {
 public:
  // The snapshot is of a sweep.
  PodSwapRequest next(const judge_limits::PodSwapPolicy& policy, const Snapshot& snapshot,
                      const report::CgroupNames& names);

 private:
  std::unordered_set<std::uint64_t> limited_;  // pods with a memory.swap.high by the last request
};

// SwapTotal in bytes; absent: the node has no swap, or unknown.
std::optional<std::int64_t> swap_total(const Snapshot& snapshot);

}  // namespace headroom::daemon
