// SPDX-License-Identifier: Apache-2.0
// What headroom-kube told the API server, in a line of headroomctl status.
#pragma once

#include <string>
#include <string_view>

namespace headroom::ctl {

// `document` is headroomd's status. "" where no API server is told anything.
std::string api_line(std::string_view document);

}  // namespace headroom::ctl
