// SPDX-License-Identifier: Apache-2.0
#include "observe/clock.h"

#include <time.h>

namespace headroom::observe {

Instant now() {
  timespec time{};
  clock_gettime(CLOCK_BOOTTIME, &time);  // cannot fail for a clock the kernel has (since 2.6.39)
  return Instant(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
}

}  // namespace headroom::observe
