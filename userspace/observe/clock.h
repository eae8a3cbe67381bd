// SPDX-License-Identifier: Apache-2.0
// The clock of the edge: CLOCK_BOOTTIME, the one Instant counts.
#pragma once

#include <headroom/units.h>

namespace headroom::observe {

Instant now();

}  // namespace headroom::observe
