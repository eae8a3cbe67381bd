// SPDX-License-Identifier: Apache-2.0
// Allocations: how often this thread has asked for heap memory. The kill path must not; the
// daemon counts, reports the count with every eviction, and the tests assert that it is zero.
#pragma once

#include <cstdint>

namespace headroom::daemon {

// malloc, calloc, realloc, aligned and operator new, counted per thread.
std::uint64_t thread_allocation_count();

}  // namespace headroom::daemon
