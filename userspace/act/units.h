// SPDX-License-Identifier: Apache-2.0
// Units: systemd's units, made and sized. Every call returns at once; how it came out is told
// later, on the thread that made it.
#pragma once

#include "act/unit_properties.h"

#include <headroom/result.h>

#include <cstdint>
#include <functional>
#include <string>

namespace headroom::act {

enum class Lasting : std::uint8_t {
  kUntilReboot,
  kForGood,
};

class Units {
 public:
  using Done = std::function<void(const Result<>&)>;

  virtual ~Units() = default;
  virtual void set(const std::string& unit, const UnitProperties& properties, Lasting lasting,
                   Done done) = 0;
  virtual void start(const std::string& unit, Done done) = 0;
};

}  // namespace headroom::act
