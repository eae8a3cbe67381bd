// SPDX-License-Identifier: Apache-2.0
// PlacedPod: where a pod goes on this node and with which values: its slice, its unit, its
// manifest.
#pragma once

#include "act/unit_properties.h"
#include "config/config.h"

#include <headroom/pod.h>
#include <headroom/result.h>

#include <filesystem>
#include <string>

namespace headroom::ctl {

struct PlacedPod {
  std::string slice;               // "kubepods-burstable-pod1234.slice"
  std::string unit;                // "headroom-run-default-web.service"
  act::UnitProperties properties;  // of the slice
  int oom_score_adj = 0;
  std::filesystem::path manifest;
};

// Errors: the pods' cgroup is none of systemd's.
Result<PlacedPod> place_here(const Pod& pod, const config::Config& config, Bytes memory_capacity);

// What a pod of that name runs as.
std::string unit_of(const std::string& pod_namespace, const std::string& name);

}  // namespace headroom::ctl
