// SPDX-License-Identifier: Apache-2.0
// DryActuator: observe mode. It does nothing, and says so in the outcome.
#pragma once

#include "act/host_actuator.h"

#include <headroom/ports.h>

#include <vector>

namespace headroom::act {

class DryActuator final : public Actuator {
 public:
  // `real` outlives this: what it began before the mode changed is still collected.
  explicit DryActuator(Now now, Actuator* real = nullptr) : now_(now), real_(real) {}

  void update_kill_fds(std::span<const PodReading>) override {}
  Outcome act(const Decision& decision) override {
    return Outcome{
        .decision = decision, .result = Outcome::Result::kDryRun, .error = 0, .at = now_()};
  }
  void collect(std::vector<Outcome>& ended) override {
    if (real_)
      real_->collect(ended);
    else
      ended.clear();
  }

 private:
  Now now_;
  Actuator* real_;
};

}  // namespace headroom::act
