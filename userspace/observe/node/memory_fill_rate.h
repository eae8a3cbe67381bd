// SPDX-License-Identifier: Apache-2.0
// Fill rate: how fast this machine can hand out memory at worst; what the watch must outrun.
#pragma once

#include <cstdint>

namespace headroom::observe {

// Bytes per second: one thread's rate of first touching 4 KiB pages, measured here and now on
// 32 MiB (10 ms on an ordinary machine), times the CPUs online. Huge pages fill faster, but are
// handed out two megabytes at a time only where they lie ready.
std::int64_t measure_fastest_fill();

}  // namespace headroom::observe
