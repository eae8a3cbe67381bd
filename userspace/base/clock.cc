// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <time.h>

namespace headroom::observe {
namespace {

Duration read(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);  // cannot fail for a clock the kernel has (both since 2.6.39)
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

Instant now() {
  return Instant(read(CLOCK_BOOTTIME));
}

Duration thread_cpu_time() {
  return read(CLOCK_THREAD_CPUTIME_ID);
}

}  // namespace headroom::observe
