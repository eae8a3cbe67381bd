// SPDX-License-Identifier: Apache-2.0
#include "judge/waits/cpu_waits.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace headroom {
namespace {

Nanoseconds& of(WindowWaits& waits, CpuWaitCause cause) {
  return waits[static_cast<std::size_t>(cause)];
}

// Moves up to `most` of what is left to the cause.
void take(Nanoseconds most, CpuWaitCause cause, Nanoseconds& left, WindowWaits& waits) {
  const Nanoseconds taken = std::clamp(most, 0.0, left);
  of(waits, cause) += taken;
  left -= taken;
}

}  // namespace

RunnersByShare::RunnersByShare(std::vector<Runner> runners, Nanoseconds kernel)
    : runners_(std::move(runners)),
      ran_from_(runners_.size() + 1),
      ran_by_share_from_(runners_.size() + 1),
      ran_(std::max(kernel, 0.0)) {
  std::sort(runners_.begin(), runners_.end(),
            [](const Runner& a, const Runner& b) { return a.share < b.share; });
  for (std::size_t i = runners_.size(); i-- > 0;) {
    const Runner& runner = runners_[i];
    ran_ += runner.ran;
    ran_from_[i] = ran_from_[i + 1] + runner.ran;
    ran_by_share_from_[i] =
        ran_by_share_from_[i + 1] + (runner.share > 0 ? runner.ran / runner.share : 0);
  }
}

double RunnersByShare::lost_to_larger(double share) const {
  if (ran_ <= 0) return 0;
  const auto first =
      std::upper_bound(runners_.begin(), runners_.end(), share,
                       [](double value, const Runner& runner) { return value < runner.share; });
  const auto i = static_cast<std::size_t>(first - runners_.begin());
  // The sum of ran * (1 - share / larger share).
  return std::clamp((ran_from_[i] - share * ran_by_share_from_[i]) / ran_, 0.0, 1.0);
}

WindowWaits attribute(const WaitingGroup& group, const RunnersByShare& runners) {
  WindowWaits waits{};
  Nanoseconds left = std::clamp(group.waited, 0.0, group.window);
  take(group.quota, CpuWaitCause::kQuota, left, waits);
  take(group.parent_quota, CpuWaitCause::kParentQuota, left, waits);
  const CpusOfGroup own = group.cpus ? *group.cpus : CpusOfGroup{};
  if (!own.any || own.busy <= 0 || !group.share) {
    take(left, CpuWaitCause::kUnknown, left, waits);
    return waits;
  }
  take(left - (group.window - own.most_idle) - group.busy_before, CpuWaitCause::kPlacement, left,
       waits);
  take(left * own.interrupts / own.busy, CpuWaitCause::kInterrupts, left, waits);
  take(left * (1 - own.others_busy), CpuWaitCause::kCpuset, left, waits);
  take(left * runners.lost_to_larger(*group.share), CpuWaitCause::kWeight, left, waits);
  take(left, CpuWaitCause::kNode, left, waits);
  return waits;
}

Nanoseconds busy_time(const WaitingGroup& group) {
  if (!group.cpus || !group.cpus->any) return 0;
  return std::max(group.window - group.cpus->most_idle, 0.0);
}

Nanoseconds time_at_quota(const ThrottleWindow& throttle, Nanoseconds window) {
  if (throttle.throttled <= 0 || window <= 0) return 0;
  // The number of run queues that waited at a time.
  const double queues = throttle.any_waited > 0 ? throttle.queues_waited / throttle.any_waited
                                                : (throttle.throttled + throttle.ran) / window;
  return std::min(throttle.throttled / std::max(queues, 1.0), window);
}

}  // namespace headroom
