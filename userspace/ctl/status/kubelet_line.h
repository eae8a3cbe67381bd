// SPDX-License-Identifier: Apache-2.0
// What headroom-kube hears of the kubelet, in a line of headroomctl status.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headroom::ctl {

// `document` is headroomd's status, `now` seconds since 1970. "" where there is no kubelet to ask.
std::string kubelet_line(std::string_view document, std::int64_t now);

}  // namespace headroom::ctl
