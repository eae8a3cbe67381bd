// SPDX-License-Identifier: Apache-2.0
// Whether a request's Host header means this host.
//
// A foreign page may let its own name resolve to this host's address (DNS rebinding); the browser
// then treats the answers of headroomd as that page's. The Host header reveals it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headroom::report {

// `host` as the header has it: "localhost:9750", "[::1]". Addresses, localhost and `names` mean
// this host; so does "", which no browser sends.
bool is_allowed_host(std::string_view host, const std::vector<std::string>& names);

}  // namespace headroom::report
