// SPDX-License-Identifier: Apache-2.0
// ExitWatchingActuator: asks the kernel to report the exits of the processes that are killed, and
// leaves the killing to another actuator.
#pragma once

#include "daemon/turn/failsafe_list.h"
#include "observe/bpf/lifecycle_watch.h"

#include <headroom/ports.h>

#include <vector>

namespace headroom::daemon {

class ExitWatchingActuator final : public Actuator {
 public:
  // `watch` may be null: then exits are not reported.
  ExitWatchingActuator(Actuator& actuator, observe::LifecycleWatch* watch,
                       FailsafeList& failsafe_list)
      : actuator_(&actuator), watch_(watch), failsafe_list_(&failsafe_list) {}

  void update_kill_fds(std::span<const PodReading> pods) override {
    actuator_->update_kill_fds(pods);
  }
  // Before the kill, so that the first exit is not missed; the map has its room already.
  Outcome act(const Decision& decision) override {
    // The exit of a single process is noticed by its own pidfd.
    const bool watched = watch_ && decision.part.unit != EvictionUnit::kProcess &&
                         (decision.act == Act::kKill || decision.act == Act::kTerminate);
    const CgroupId cgroup = decision.part.whole() ? decision.cgroup : decision.part.cgroup;
    if (watched) watch_->watch_exits(cgroup);
    Outcome outcome = actuator_->act(decision);
    if (watched && outcome.result != Outcome::Result::kDone) watch_->forget_exits(cgroup);
    return outcome;
  }
  // And what was done in the loop's place.
  void collect(std::vector<Outcome>& ended) override {
    actuator_->collect(ended);
    failsafe_list_->collect(ended);
  }

 private:
  Actuator* actuator_;
  observe::LifecycleWatch* watch_;
  FailsafeList* failsafe_list_;
};

}  // namespace headroom::daemon
