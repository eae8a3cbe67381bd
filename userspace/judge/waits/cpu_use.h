// SPDX-License-Identifier: Apache-2.0
// cpu_uses(): how much of the CPUs each pod used during a window, and how much of the time another
// pod lost to the node's shortage because of it.
#pragma once

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

// `may_hold(runner, loser)` is false for a pair that has no CPU in common. A pod held up the loser
// that lost most, other than itself, in proportion to its part of what ran on that one's CPUs. The
// loser's own time is part of that: without the pod it would still compete with itself.
CpuUses cpu_uses(Duration window, std::vector<CpuLoser> losers, std::span<const CpuRunner> runners,
                 const std::function<bool(CgroupId runner, CgroupId loser)>& may_hold);

}  // namespace headroom
