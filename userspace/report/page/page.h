// SPDX-License-Identifier: Apache-2.0
// The web page, assembled by the build: one document without external resources.
#pragma once

#include <string_view>

namespace headroom::report {

std::string_view page_html();
// Its Content-Security-Policy: allows only its own style and script, by hash, and its own server.
std::string_view page_policy();

}  // namespace headroom::report
