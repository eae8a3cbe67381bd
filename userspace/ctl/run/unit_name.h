// SPDX-License-Identifier: Apache-2.0
// Unit names of the containers that headroomctl run starts.
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

// Absent if the unit is not such a container.
std::optional<RunName> run_name(std::string_view unit);

// Matches all these units.
inline constexpr const char* kRunUnitPattern = "headroom-run-*.service";

// Whether the text is a DNS label, as an API server requires. It has no dot, so it can be a part of
// a unit's and a file's name.
bool is_dns_label(std::string_view text);

}  // namespace headroom::ctl
