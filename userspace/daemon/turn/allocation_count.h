// SPDX-License-Identifier: Apache-2.0
// thread_allocation_count(): how often the calling thread has allocated heap memory. The kill path
// must not allocate: the daemon reports its count with every eviction, and the tests assert zero.
#pragma once

#include <cstdint>

namespace headroom::daemon {

// Counts malloc, calloc, realloc, aligned allocations and operator new.
std::uint64_t thread_allocation_count();

}  // namespace headroom::daemon
