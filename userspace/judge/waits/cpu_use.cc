// SPDX-License-Identifier: Apache-2.0
#include "judge/waits/cpu_use.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace headroom {
namespace {

// Those that lost most; a pod that shares no CPU with any of them held nothing up worth acting on.
constexpr std::size_t kLosers = 4;
// Of the window: a smaller loss is no reason to act. So on a node without contention no cpuset is
// read for this.
constexpr double kLeastLost = 0.01;
constexpr double kMillion = 1e6;

struct Loser {
  CgroupId pod;
  const CpuSet* cpus = nullptr;  // null: unknown, so any
  double lost = 0;
  double ran = 0;  // what ran on its CPUs
};

std::vector<Loser> losers_of_most(std::vector<CpuLoser> losers, double length,
                                  const std::function<const CpuSet*(CgroupId)>& cpus_of) {
  std::erase_if(losers, [&](const CpuLoser& each) { return each.lost < kLeastLost * length; });
  const auto kept = static_cast<std::ptrdiff_t>(std::min(kLosers, losers.size()));
  std::partial_sort(losers.begin(), losers.begin() + kept, losers.end(),
                    [](const CpuLoser& a, const CpuLoser& b) { return a.lost > b.lost; });
  std::vector<Loser> most;
  for (const CpuLoser& each : std::span(losers).first(static_cast<std::size_t>(kept)))
    most.push_back({.pod = each.pod, .cpus = cpus_of(each.pod), .lost = each.lost});
  return most;
}

// Bit i: the runner has a CPU in common with losers[i], or is that one.
unsigned losers_beside(CgroupId runner, std::span<const Loser> losers,
                       const std::function<const CpuSet*(CgroupId)>& cpus_of) {
  if (losers.empty()) return 0;
  const CpuSet* cpus = runner.value == 0 ? nullptr : cpus_of(runner);
  unsigned beside = 0;
  for (std::size_t i = 0; i < losers.size(); ++i)
    if (!cpus || !losers[i].cpus || runner == losers[i].pod || cpus->intersects(*losers[i].cpus))
      beside |= 1U << i;
  return beside;
}

}  // namespace

CpuUses cpu_uses(Duration window, std::vector<CpuLoser> losers, std::span<const CpuRunner> runners,
                 const std::function<const CpuSet*(CgroupId)>& cpus_of) {
  CpuUses uses;
  const auto length = static_cast<double>(window.count());
  if (length <= 0) return uses;
  std::vector<Loser> most = losers_of_most(std::move(losers), length, cpus_of);
  std::vector<unsigned> beside;  // of runners[i]
  beside.reserve(runners.size());
  for (const CpuRunner& runner : runners) {
    beside.push_back(losers_beside(runner.pod, most, cpus_of));
    for (std::size_t i = 0; i < most.size(); ++i)
      if (beside.back() & 1U << i) most[i].ran += runner.ran;
  }
  for (std::size_t at = 0; at < runners.size(); ++at) {
    const CpuRunner& runner = runners[at];
    if (runner.pod.value == 0) continue;
    CpuUse use{.used = MilliCpu{std::llround(1000 * runner.ran / length)}};
    for (std::size_t i = 0; i < most.size(); ++i) {
      if (runner.pod == most[i].pod || most[i].ran <= 0 || !(beside[at] & 1U << i)) continue;
      use.held_up = std::llround(kMillion * most[i].lost / length * runner.ran / most[i].ran);
      break;
    }
    uses.ids.push_back(runner.pod.value);
    uses.values.push_back(use);
  }
  return uses;
}

}  // namespace headroom
