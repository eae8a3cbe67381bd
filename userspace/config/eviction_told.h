// SPDX-License-Identifier: Apache-2.0
// EvictionTold: the eviction settings as the file and the flags tell them, each with its place.
//
// Thresholds cannot be judged one by one (a soft one needs a grace period that another map or flag
// holds), so they are gathered first, then handed to the judge's builder; what it objects to is
// led back to the line it came from.
#pragma once

#include "config/complaint.h"
#include "config/told.h"

#include <headroom/policy.h>

#include <optional>
#include <string>
#include <vector>

namespace headroom::config {

struct EvictionTold {
  std::optional<Told> hard;  // absent: the kubelet's defaults; empty: none
  std::optional<Told> soft;
  std::optional<Told> soft_grace;
  std::optional<Told> min_reclaim;
  std::optional<Told> enforce_node_allocatable;  // absent: pods
  bool merge_defaults = false;
};

// enforceNodeAllocatable, without the keys that are complained of.
std::vector<std::string> enforcements_told(const EvictionTold& told, Complaints& complaints);

// The policy's thresholds; complaints are added for what is wrong, and then the list is partial.
std::vector<Threshold> thresholds_told(const EvictionTold& told,
                                       const std::vector<std::string>& enforcements,
                                       Complaints& complaints);

}  // namespace headroom::config
