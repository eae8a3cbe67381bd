// SPDX-License-Identifier: Apache-2.0
// OwnHost: whether a request's Host header means this host.
//
// A page elsewhere may let its own name resolve to our address (DNS rebinding); to its reader's
// browser our answers are then its own, and it reads them. The name it must ask for gives it away.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headroom::report {

// `host` as the header has it: "localhost:9750", "[::1]". Addresses, localhost and `names` are
// ours; so is "", which no browser sends.
bool is_allowed_host(std::string_view host, const std::vector<std::string>& names);

}  // namespace headroom::report
