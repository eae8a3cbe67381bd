// SPDX-License-Identifier: Apache-2.0
// PodUnits: the systemd units of a pod and their settings: its slice and a service for each
// container; and the path of its manifest.
#pragma once

#include "config/config.h"
#include "judge/allocatable/cgroup/cgroup_values.h"
#include "judge/allocatable/pod_sizing.h"

#include <headroom/pod.h>
#include <headroom/result.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::ctl {

// Unit names of the containers that headroomctl run starts.

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

struct ContainerUnit {
  std::string name;
  std::string unit;  // "headroom-run-default.web.service"
  CgroupValues values;
  int oom_score_adj = 0;
};

struct PodUnits {
  std::string slice;  // "kubepods-burstable-pod1234.slice"
  std::string path;   // of its cgroup, below the root: "/kubepods.slice/..."
  CgroupValues values;
  std::vector<ContainerUnit> containers;  // init containers first
  std::filesystem::path manifest;
};

// Error if the pods' cgroup is not a systemd slice.
Result<PodUnits> make_pod_units(const Pod& pod, const config::Config& config,
                                const NodeMemory& node);

}  // namespace headroom::ctl
