// SPDX-License-Identifier: Apache-2.0
#include "judge/waits/cpu_use.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace headroom {
namespace {

// Those that lost most; a pod that shares no CPU with any of them held nothing up worth acting on.
constexpr std::size_t kLosers = 4;
// Of the window: a smaller loss is no reason to act. So on a node without contention no cpuset is
// read for this.
constexpr double kLeastLost = 0.01;
constexpr double kMillion = 1e6;

}  // namespace

CpuUses cpu_uses(Duration window, std::vector<CpuLoser> losers, std::span<const CpuRunner> runners,
                 const std::function<bool(CgroupId, CgroupId)>& may_hold) {
  CpuUses uses;
  const auto length = static_cast<double>(window.count());
  if (length <= 0) return uses;
  std::erase_if(losers, [&](const CpuLoser& each) { return each.lost < kLeastLost * length; });
  std::sort(losers.begin(), losers.end(),
            [](const CpuLoser& a, const CpuLoser& b) { return a.lost > b.lost; });
  if (losers.size() > kLosers) losers.resize(kLosers);
  // What ran on the CPUs of each.
  std::vector<double> ran(losers.size());
  for (std::size_t i = 0; i < losers.size(); ++i)
    for (const CpuRunner& runner : runners)
      if (runner.pod == losers[i].pod || may_hold(runner.pod, losers[i].pod)) ran[i] += runner.ran;
  for (const CpuRunner& runner : runners) {
    if (runner.pod.value == 0) continue;
    CpuUse use{.used = MilliCpu{std::llround(1000 * runner.ran / length)}};
    for (std::size_t i = 0; i < losers.size(); ++i) {
      if (runner.pod == losers[i].pod || ran[i] <= 0 || !may_hold(runner.pod, losers[i].pod))
        continue;
      use.held_up = std::llround(kMillion * losers[i].lost / length * runner.ran / ran[i]);
      break;
    }
    uses.ids.push_back(runner.pod.value);
    uses.values.push_back(use);
  }
  return uses;
}

}  // namespace headroom
