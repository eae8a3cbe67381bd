// SPDX-License-Identifier: Apache-2.0
// What the containers of a pod that headroomctl run starts run as.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace headroom::ctl {

struct RunName {
  std::string pod_namespace{};
  std::string pod{};
  std::string container{};  // "": the pod's only one
  friend bool operator==(const RunName&, const RunName&) = default;
};

// "headroom-run-default.web.service", "headroom-run-default.web.main.service"
std::string unit_name(const RunName& name);

// Absent: it is none of these.
std::optional<RunName> run_name(std::string_view unit);

// The pattern of all of them.
inline constexpr const char* kRunUnitPattern = "headroom-run-*.service";

// What such a unit's name and a file's can hold, and an API server would take: no dot among it.
bool is_dns_label(std::string_view text);

}  // namespace headroom::ctl
