// SPDX-License-Identifier: Apache-2.0
// UnitManager: creates systemd's units and sets their properties. Every call returns at once; its
// result is delivered later, on the thread that called.
#pragma once

#include "act/units/unit_properties.h"

#include <headroom/result.h>

#include <cstdint>
#include <functional>
#include <string>

namespace headroom::act {

enum class Persistence : std::uint8_t {
  kUntilReboot,
  kPersistent,
};

class UnitManager {
 public:
  using Done = std::function<void(const Result<>&)>;

  virtual ~UnitManager() = default;
  virtual void set(const std::string& unit, const UnitProperties& properties,
                   Persistence persistence, Done done) = 0;
  virtual void start(const std::string& unit, Done done) = 0;
};

}  // namespace headroom::act
