// SPDX-License-Identifier: Apache-2.0
// Text from processes, cgroups and files, fit for one line of a log and for JSON.
#pragma once

#include <string>
#include <string_view>

namespace headroom {

// Each control character, and each byte that is not part of valid UTF-8, becomes '?'.
std::string printable(std::string_view text);

}  // namespace headroom
