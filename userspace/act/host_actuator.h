// SPDX-License-Identifier: Apache-2.0
// HostActuator: does to this host what was decided.
#pragma once

#include "act/armed.h"

#include <headroom/ports.h>

namespace headroom::act {

using Now = Instant (*)();

class HostActuator final : public Actuator {
 public:
  HostActuator(DirectoryOf directory_of, Now now) : armory_(std::move(directory_of)), now_(now) {}

  void arm(std::span<const PodReading> pods) override { armory_.keep(pods); }
  Outcome act(const Decision& decision) override;

  std::size_t armed() const { return armory_.size(); }
  std::size_t unarmed() const { return armory_.unarmed(); }

 private:
  Outcome done(const Decision& decision, Outcome::Result result, int error = 0) const;
  Outcome kill(const Decision& decision, const Armed& armed) const;
  Outcome terminate(const Decision& decision, const Armed& armed) const;

  Armory armory_;
  Now now_;
};

}  // namespace headroom::act
