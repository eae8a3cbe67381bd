// SPDX-License-Identifier: Apache-2.0
// CpuSuppressRequests: which cgroups the CpuSuppressWorker is to suppress until the next sweep:
// those of the pods that plan_suppress() names, and a QoS tier in which nothing else runs.
#pragma once

#include "judge/limits/suppress_plan.h"
#include "report/view/node_view.h"

#include <headroom/snapshot.h>
#include <headroom/units.h>

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace headroom::daemon {

struct CpuSuppressRequest {
  struct Cgroup {
    CgroupId id;
    std::string path;  // below the cgroup root
    bool is_pod = true;
    friend bool operator==(const Cgroup&, const Cgroup&) = default;
  };
  std::vector<Cgroup> cgroups;
};

class CpuSuppressRequests {
 public:
  // The snapshot is of a sweep. `pods_cgroup`: tiers are directly in it; "": another program sets
  // the weights of tiers, and they are not suppressed as such. The scheduler compares siblings: a
  // pod that is idle within its tier yields to pods of other tiers only if the tier is idle too.
  CpuSuppressRequest next(const judge_limits::SuppressPolicy& policy, const Snapshot& snapshot,
                          const report::CgroupNames& names, const std::string& pods_cgroup);

 private:
  // Of a pod, at the end of a window.
  struct Totals {
    std::optional<std::uint64_t> waited_ns, used_ns;
  };
  using ByPod = std::unordered_map<std::uint64_t, Totals>;

  void end_window(const judge_limits::SuppressPolicy& policy, const Snapshot& snapshot, Instant at);
  judge_limits::SuppressReading reading_of(const judge_limits::SuppressPolicy& policy,
                                           const PodReading& pod, const Totals& now,
                                           Instant at) const;
  static void add_tiers(const Snapshot& snapshot, const report::CgroupNames& names,
                        const std::string& pods_cgroup, CpuSuppressRequest& request);

  judge_limits::SuppressPolicy policy_{};
  judge_limits::SuppressHistory history_;
  std::optional<Instant> window_at_;  // the end of the last window
  ByPod totals_;
};

}  // namespace headroom::daemon
