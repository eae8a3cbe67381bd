// SPDX-License-Identifier: Apache-2.0
// cpu_uses(): how much of the CPUs each pod used during a window, and how much of the time another
// pod lost to the node's shortage because of it.
#pragma once

#include <headroom/cpuset.h>
#include <headroom/units.h>
#include <headroom/waits.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace headroom {

// A pod that waited because the node had no CPU left.
struct CpuLoser {
  CgroupId pod;
  double lost = 0;  // nanoseconds of the window
};

struct CpuRunner {
  CgroupId pod;    // 0: the kernel, and processes outside pods
  double ran = 0;  // nanoseconds, of all CPUs together
};

struct CpuUses {
  std::vector<std::uint64_t> ids;
  std::vector<CpuUse> values;  // of ids[i]
};

// A pod held up the loser that lost most, other than itself, of those that it has a CPU in common
// with, in proportion to its part of what ran on that one's CPUs. The loser's own time is part of
// that: without the pod it would still compete with itself. `cpus_of`: the CPUs that a pod may use,
// null: unknown; it is called only if a pod lost time.
CpuUses cpu_uses(Duration window, std::vector<CpuLoser> losers, std::span<const CpuRunner> runners,
                 const std::function<const CpuSet*(CgroupId)>& cpus_of);

}  // namespace headroom
