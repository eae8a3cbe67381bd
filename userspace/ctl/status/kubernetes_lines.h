// SPDX-License-Identifier: Apache-2.0
// Lines of headroomctl status about headroom-kube: what it received from the kubelet, and what it
// reported to the API server, and where it serves metrics.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headroom::ctl {

// api_line(): what headroom-kube has sent to the API server, as a line of headroomctl status.

// `document` is headroomd's status. "" if no API server is configured.
std::string api_line(std::string_view document);

// `document` is headroomd's status, `now` seconds since 1970. "" if no kubelet is configured.
std::string kubelet_line(std::string_view document, std::int64_t now);

// What headroom-kube reports to Kubernetes' scheduler. "" if that is off.
std::string scheduling_line(std::string_view document);

// Where headroom-kube serves metrics over HTTPS. "" if it does not.
std::string metrics_line(std::string_view document);

}  // namespace headroom::ctl
