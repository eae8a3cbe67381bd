// SPDX-License-Identifier: Apache-2.0
// The clocks of the edge: CLOCK_BOOTTIME, the one Instant counts, and CPU time.
#pragma once

#include <headroom/units.h>

namespace headroom::observe {

Instant now();

// Of the calling thread, in user space and in the kernel.
Duration thread_cpu_time();

}  // namespace headroom::observe
