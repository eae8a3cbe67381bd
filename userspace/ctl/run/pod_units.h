// SPDX-License-Identifier: Apache-2.0
// PodUnits: the systemd units of a pod and their settings: its slice and a service for each
// container; and the path of its manifest.
#pragma once

#include "config/config.h"
#include "judge/allocatable/cgroup/cgroup_values.h"
#include "judge/allocatable/pod_cgroup.h"

#include <headroom/pod.h>
#include <headroom/result.h>

#include <filesystem>
#include <string>
#include <vector>

namespace headroom::ctl {

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
