// SPDX-License-Identifier: Apache-2.0
// Pods as the vectors write them.
#pragma once

#include "judge/eviction/rank/pod_usage.h"

#include <headroom/pod.h>

#include <nlohmann/json.hpp>

namespace headroom::vectors {

// Pod-level resources count only where the line says that their gate was on.
Pod pod_of(const nlohmann::json& json, bool pod_level_enabled = false);

PodUsage usage_of(const nlohmann::json& json);

}  // namespace headroom::vectors
