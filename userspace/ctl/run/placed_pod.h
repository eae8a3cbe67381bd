// SPDX-License-Identifier: Apache-2.0
// PlacedPod: where a pod goes on this node and with which values: its slice, a unit for each of
// its containers, its manifest.
#pragma once

#include "config/config.h"
#include "judge/allocatable/desired.h"
#include "judge/allocatable/pod_cgroup.h"

#include <headroom/pod.h>
#include <headroom/result.h>

#include <filesystem>
#include <string>
#include <vector>

namespace headroom::ctl {

struct PlacedContainer {
  std::string name;
  std::string unit;  // "headroom-run-default.web.service"
  CgroupValues values;
  int oom_score_adj = 0;
};

struct PlacedPod {
  std::string slice;  // "kubepods-burstable-pod1234.slice"
  std::string path;   // of its cgroup, below the root: "/kubepods.slice/..."
  CgroupValues values;
  std::vector<PlacedContainer> containers;  // init containers first
  std::filesystem::path manifest;
};

// Errors: the pods' cgroup is none of systemd's.
Result<PlacedPod> place_here(const Pod& pod, const config::Config& config, const NodeMemory& node);

}  // namespace headroom::ctl
