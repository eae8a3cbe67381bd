// SPDX-License-Identifier: Apache-2.0
// CpuBurstRequests: what the CpuBurstWorker is to watch until the next sweep: the quotas of pods
// that were throttled lately.
#pragma once

#include "judge/limits/burst_plan.h"
#include "report/view/node_view.h"

#include <headroom/snapshot.h>
#include <headroom/units.h>

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace headroom::daemon {

struct CpuBurstRequest {
  // A cgroup of a pod with a quota in cpu.max.
  struct Quota {
    CgroupId id;
    std::string path;  // below the cgroup root
    std::uint64_t quota_us = 0;
    friend bool operator==(const Quota&, const Quota&) = default;
  };
  struct Pod {
    CgroupId id;
    std::vector<Quota> quotas;
    // Since the last request.
    bool throttled = false;
    bool bursting = false;
    double quota = 0;              // CPUs, of the outermost of them
    std::optional<double> used{};  // CPUs, of these
  };
  judge_limits::BurstPolicy policy{};
  std::vector<Pod> pods;
};

class CpuBurstRequests {
 public:
  // The snapshot is of a sweep.
  CpuBurstRequest next(const judge_limits::BurstPolicy& policy, const Snapshot& snapshot,
                       const report::CgroupNames& names);

 private:
  struct Totals {
    std::uint64_t throttled = 0, bursts = 0, used_ns = 0;
  };
  struct Candidate {
    CpuBurstRequest::Pod pod;
    struct Quota {
      const hr_record* record;
      bool outermost;  // no cgroup between it and the pod's has a quota
    };
    std::vector<Quota> quotas;
  };
  // By the pod's cgroup.
  using Candidates = std::unordered_map<std::uint64_t, Candidate>;

  static Candidates candidates_of(const Snapshot& snapshot);
  void add_growth(const Candidate::Quota& quota, CpuBurstRequest::Pod& pod);

  std::optional<Instant> last_;
  double elapsed_ns_ = 0;
  std::unordered_map<std::uint64_t, Totals> totals_, next_totals_;  // by cgroup
  std::unordered_map<std::uint64_t, Instant> throttled_at_;         // by the pod's cgroup
};

}  // namespace headroom::daemon
