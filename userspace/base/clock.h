// SPDX-License-Identifier: Apache-2.0
// The clocks: CLOCK_BOOTTIME, which Instant counts, and CPU time; and wall-clock times as RFC 3339
// text.
#pragma once

#include <headroom/units.h>

#include <chrono>
#include <optional>
#include <string>

namespace headroom {

// RFC 3339 times in UTC, as the Kubernetes API (metav1.Time, metav1.MicroTime) and the logs have
// them.

using WallTime = std::chrono::system_clock::time_point;

// Whole seconds, rounded down: "2026-11-20T22:50:00Z"
std::string rfc3339(WallTime time);
// "2026-11-20T22:50:00.123456Z"
std::string rfc3339_micro(WallTime time);
// Parses either form, with one to nine digits after the point, of which the first six are used;
// absent if the text has another form, or if the time is not of the years 1970 to 2261.
std::optional<WallTime> parse_rfc3339(const std::string& text);

}  // namespace headroom

namespace headroom::observe {

Instant now();

// The CPU time of the calling thread, in user space and in the kernel.
Duration thread_cpu_time();

}  // namespace headroom::observe
