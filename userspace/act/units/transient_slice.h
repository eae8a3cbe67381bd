// SPDX-License-Identifier: Apache-2.0
// A slice made for the time being: it leaves nothing behind when it is stopped.
#pragma once

#include "act/units/unit_properties.h"

#include <headroom/result.h>

#include <string>

namespace headroom::act {

// Both wait for systemd's answer, not for the unit.
Result<> start_transient_slice(const std::string& unit, const UnitProperties& properties);
Result<> stop_unit(const std::string& unit);

}  // namespace headroom::act
