// SPDX-License-Identifier: Apache-2.0
// kubelet_line(): what headroom-kube received from the kubelet, as a line of headroomctl status.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headroom::ctl {

// `document` is headroomd's status, `now` seconds since 1970. "" if no kubelet is configured.
std::string kubelet_line(std::string_view document, std::int64_t now);

}  // namespace headroom::ctl
