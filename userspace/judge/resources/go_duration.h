// SPDX-License-Identifier: Apache-2.0
// Go durations: "1m30s", "500ms", "0"; the way a KubeletConfiguration writes spans of time.
#pragma once

#include <headroom/result.h>
#include <headroom/units.h>

#include <string>
#include <string_view>

namespace headroom {

// As Go's time.ParseDuration, in its words: a bare "5" lacks its unit, a bare "0" does not.
// Negative spans parse; whether they make sense is the caller's to say.
Result<Duration> parse_go_duration(std::string_view text);

// As Go's Duration.String: "0s", "500ms", "1.5s", "1m30s", "2m0s", "1h0m0s".
std::string format_go_duration(Duration duration);

}  // namespace headroom
