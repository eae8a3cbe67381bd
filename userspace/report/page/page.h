// SPDX-License-Identifier: Apache-2.0
// The web page, as the build put it together: one document without external resources.
#pragma once

#include <string_view>

namespace headroom::report {

std::string_view page_html();
// Its Content-Security-Policy: its own style and script by their hashes, its own server, no more.
std::string_view page_policy();

}  // namespace headroom::report
