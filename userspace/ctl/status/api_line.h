// SPDX-License-Identifier: Apache-2.0
// api_line(): what headroom-kube has sent to the API server, as a line of headroomctl status.
#pragma once

#include <string>
#include <string_view>

namespace headroom::ctl {

// `document` is headroomd's status. "" if no API server is configured.
std::string api_line(std::string_view document);

}  // namespace headroom::ctl
