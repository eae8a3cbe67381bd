// SPDX-License-Identifier: Apache-2.0
// DryActuator: observe mode. It does nothing, and says so in the outcome.
#pragma once

#include "act/host_actuator.h"

#include <headroom/ports.h>

namespace headroom::act {

class DryActuator final : public Actuator {
 public:
  explicit DryActuator(Now now) : now_(now) {}

  void arm(std::span<const PodReading>) override {}
  Outcome act(const Decision& decision) override {
    return Outcome{
        .decision = decision, .result = Outcome::Result::kPretended, .error = 0, .at = now_()};
  }

 private:
  Now now_;
};

}  // namespace headroom::act
