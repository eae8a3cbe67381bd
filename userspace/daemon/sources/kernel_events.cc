// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/kernel_events.h"

#include <algorithm>
#include <utility>

namespace headroom::daemon {

void KernelEventHandler::take(const hr_event& event) {
  const Instant at{Duration(static_cast<std::int64_t>(event.at_ns))};
  const CgroupId cgroup{event.cgroup};
  const auto sweep_by = [&](Instant by) { due_ = due_ ? std::min(*due_, by) : by; };
  switch (static_cast<hr_event_kind>(event.kind)) {
    case HR_EVENT_CREATED:
      return sweep_by(at + kBatchDelay);
    case HR_EVENT_UNPOPULATED:
      // That one is waited for; of the others the next pass will do.
      if (setup_.is_victim(cgroup)) sweep_by(at);
      return;
    case HR_EVENT_REMOVED:
      return sweep_by(setup_.is_victim(cgroup) ? at : at + kBatchDelay);
    case HR_EVENT_OOM_KILL:
      return setup_.oom_kill(event);
    case HR_EVENT_EXIT:
      return setup_.exited(event);
  }
}

std::optional<Instant> KernelEventHandler::due() {
  return std::exchange(due_, std::nullopt);
}

}  // namespace headroom::daemon
