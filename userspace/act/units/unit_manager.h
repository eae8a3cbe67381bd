// SPDX-License-Identifier: Apache-2.0
// Units: systemd's units, made and sized. Every call returns at once; how it came out is told
// later, on the thread that made it.
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
