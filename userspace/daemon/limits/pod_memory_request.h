// SPDX-License-Identifier: Apache-2.0
// PodMemoryRequest: what the PodMemoryWorker is to watch until the next sweep: cgroups of pods that
// have a memory.max, and pods over their requests while the node has little memory left.
#pragma once

#include "config/config.h"
#include "report/view/node_view.h"

#include <headroom/judge.h>
#include <headroom/snapshot.h>
#include <headroom/units.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace headroom::daemon {

struct PodMemoryRequest {
  struct Limited {
    CgroupId id;
    std::string path;  // below the cgroup root
  };
  struct OverRequest {
    CgroupId id;
    std::string path;
    std::int64_t usage = 0;  // bytes
    std::int64_t request = 0;
    std::uint64_t refaulted = 0;              // bytes since the pod began
    std::optional<std::int64_t> swap_room{};  // that it may still swap; absent: no limit
  };
  judge_limits::LimitPolicy limits{};
  judge_limits::ColdPolicy cold{};
  // No limit is raised unless more memory is available on the node: the highest threshold of
  // memory.available, and headroom.podLimits.rescue.margin.
  std::int64_t reserved = 0;
  std::vector<Limited> limited;
  std::vector<OverRequest> over_request;
  bool cold_wanted = false;  // MemAvailable is below coldMemory.below
};

// The snapshot is of a sweep.
PodMemoryRequest pod_memory_request(const config::Config& config, const Snapshot& snapshot,
                                    const Verdict& verdict, const report::CgroupNames& names);

}  // namespace headroom::daemon
