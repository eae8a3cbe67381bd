// SPDX-License-Identifier: Apache-2.0
// Node allocatable: what pods may have of a node (kubelet: cm/node_container_manager_linux.go).
#pragma once

#include "judge/allocatable/allocatable_policy.h"
#include "judge/allocatable/amounts.h"

#include <headroom/policy.h>

#include <span>
#include <string>
#include <vector>

#include <tl/expected.hpp>

namespace headroom {

struct NodeAllocatable {
  // kube-reserved, system-reserved, and the hard thresholds of memory.available and
  // nodefs.available.
  Amounts reservation;
  // capacity − reservation, memory also without huge pages: what a scheduler may hand out.
  Amounts allocatable;
  // capacity − kube-reserved − system-reserved: the limit of the pods' cgroup. The thresholds are
  // not subtracted, so that eviction comes before the limit is reached.
  Amounts pods_limit;
};

struct ReservationError {
  std::string resource;  // "memory"
  std::string what;
  friend bool operator==(const ReservationError&, const ReservationError&) = default;
};

// Compute it again whenever the capacity changes. Errors: every resource whose reservation exceeds
// its capacity or the known part of it.
tl::expected<NodeAllocatable, std::vector<ReservationError>> node_allocatable(
    const Amounts& capacity, const AllocatablePolicy& policy,
    std::span<const Threshold> thresholds);

// All errors in the words of the kubelet, which refuses to start with them.
std::string invalid_node_allocatable(const std::vector<ReservationError>& errors);

}  // namespace headroom
