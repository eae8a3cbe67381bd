// SPDX-License-Identifier: Apache-2.0
// UnitProperties as systemd's calls take them: a(sv).
#pragma once

#include "act/units/unit_properties.h"

struct sd_bus_message;

namespace headroom::act {

// Negative: an errno of sd-bus.
int append(sd_bus_message* message, const UnitProperties& properties);

}  // namespace headroom::act
