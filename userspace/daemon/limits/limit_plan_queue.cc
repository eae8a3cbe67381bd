// SPDX-License-Identifier: Apache-2.0
#include "daemon/limits/limit_plan_queue.h"

#include <utility>

namespace headroom::daemon {

void LimitPlanQueue::switch_on() {
  const std::lock_guard lock(mutex_);
  waiting_ = {};
  on_ = true;
}

void LimitPlanQueue::add(const recording::PlannedLimit& planned) {
  if (!on_) return;
  const std::lock_guard lock(mutex_);
  if (waiting_.plans.size() < kCapacity)
    waiting_.plans.push_back(planned);
  else
    ++waiting_.lost;
}

recording::LimitPlans LimitPlanQueue::take(Instant at) {
  const std::lock_guard lock(mutex_);
  recording::LimitPlans taken = std::exchange(waiting_, {});
  taken.at = at;
  return taken;
}

void LimitPlanQueue::lose(const recording::LimitPlans& taken) {
  const std::lock_guard lock(mutex_);
  waiting_.lost += taken.lost + taken.plans.size();
}

}  // namespace headroom::daemon
