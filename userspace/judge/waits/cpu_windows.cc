// SPDX-License-Identifier: Apache-2.0
#include "judge/waits/cpu_windows.h"

#include <algorithm>
#include <cstddef>

namespace headroom {

CpusOfGroup CpuWindows::sum(const CpuSet& own) const {
  CpusOfGroup sums;
  for (std::size_t i = 0; i < cpus_.size(); ++i) {
    if (!cpus_[i]) continue;
    const CpuWindow& cpu = *cpus_[i];
    const Nanoseconds busy = cpu.tasks + cpu.interrupts;
    const Nanoseconds all = busy + cpu.idle;
    if (!own.contains(static_cast<Cpu>(i))) {
      if (all > 0) sums.others_busy *= busy / all;
      continue;
    }
    sums.any = true;
    sums.most_idle = std::max(sums.most_idle, cpu.idle);
    sums.busy += busy;
    sums.interrupts += cpu.interrupts;
  }
  return sums;
}

const CpusOfGroup& CpuWindows::of(const CpuSet& own) {
  const auto known = std::find_if(known_.begin(), known_.end(),
                                  [&](const Known& each) { return each.cpus == own; });
  if (known != known_.end()) return known->sums;
  return known_.emplace_back(Known{.cpus = own, .sums = sum(own)}).sums;
}

}  // namespace headroom
