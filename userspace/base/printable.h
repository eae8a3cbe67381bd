// SPDX-License-Identifier: Apache-2.0
// Text from processes, cgroups and files, fit for one line of a log and for JSON.
#pragma once

#include <string>
#include <string_view>

namespace headroom {

// Each byte of a control character or of a mark that changes the direction of text, and each byte
// that is not part of valid UTF-8, becomes '?'. The length stays.
std::string printable(std::string_view text);
void append_printable(std::string& to, std::string_view text);

}  // namespace headroom
