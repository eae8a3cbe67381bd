// SPDX-License-Identifier: Apache-2.0
// EvictionSettings: the eviction settings as the file and the flags have them, each with its place.
//
// Thresholds cannot be checked one by one (a soft one needs a grace period that another map or flag
// holds), so they are collected first and then passed to the judge's builder; each of its errors is
// reported with the line it came from.
#pragma once

#include "config/yaml/located_value.h"
#include "config/yaml/yaml.h"

#include <headroom/policy.h>

#include <optional>
#include <string>
#include <vector>

namespace headroom::config {

struct EvictionSettings {
  std::optional<LocatedValue> hard;  // absent: the kubelet's defaults; empty: none
  std::optional<LocatedValue> soft;
  std::optional<LocatedValue> soft_grace;
  std::optional<LocatedValue> min_reclaim;
  std::optional<LocatedValue> enforce_node_allocatable;  // absent: pods
  bool merge_defaults = false;
};

// enforceNodeAllocatable, without the keys that are complained of.
std::vector<std::string> collect_enforcements(const EvictionSettings& settings,
                                              Diagnostics& diagnostics);

// The policy's thresholds; complaints are added for what is wrong, and then the list is partial.
std::vector<Threshold> build_eviction_thresholds(const EvictionSettings& settings,
                                                 const std::vector<std::string>& enforcements,
                                                 Diagnostics& diagnostics);

}  // namespace headroom::config
