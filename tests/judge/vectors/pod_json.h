// SPDX-License-Identifier: Apache-2.0
// Pods as the vectors write them.
#pragma once

#include "judge/allocatable/cgroup/cgroup_values.h"
#include "judge/eviction/rank/rank.h"

#include <headroom/pod.h>

#include <string>

#include <nlohmann/json.hpp>

namespace headroom::vectors {

// Pod-level resources count only where the line says that their gate was on.
Pod pod_of(const nlohmann::json& json, bool pod_level_enabled = false);

PodUsage usage_of(const nlohmann::json& json);

// "cpu.weight=1 memory.max=4096 ": what is written to a cgroup, for comparisons that print well.
std::string text_of(const CgroupValues& values);

}  // namespace headroom::vectors
