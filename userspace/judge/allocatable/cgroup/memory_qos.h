// SPDX-License-Identifier: Apache-2.0
// MemoryQos: requests held by the kernel, and throttling before the limit (KEP-2570, the
// kubelet's gate MemoryQoS).
#pragma once

#include "judge/allocatable/cgroup/cgroup_values.h"

#include <headroom/pod.h>
#include <headroom/units.h>

#include <cstdint>
#include <optional>

namespace headroom {

// The keys memoryReservationPolicy and memoryThrottlingFactor, as in 1.37: by default requests are
// not protected and nothing is throttled. (Until 1.35 every request was a memory.min.)
struct MemoryQos {
  enum class Reservation : std::uint8_t {
    kUnmanaged,  // neither the gate nor the policy is set: memory.min and memory.low are left alone
    kNone,       // nothing is protected: both are zero
    kTiered,  // Guaranteed: memory.min; Burstable: memory.low, which gives way before an OOM kill
  };
  Reservation reservation = Reservation::kUnmanaged;
  std::optional<double> throttling_factor;  // memoryThrottlingFactor: above 0, at most 1
  friend bool operator==(const MemoryQos&, const MemoryQos&) = default;
};

// Adds what protects `request` of a pod of the class. Zero: nothing to protect.
void protect_pod_memory(CgroupValues& values, QosClass qos, Bytes request, const MemoryQos& policy);
// The same for a container, where nothing to protect is written as zero.
void protect_container_memory(CgroupValues& values, QosClass qos, Bytes request,
                              const MemoryQos& policy);

// memory.high: request + factor × (ceiling - request), in whole pages; the ceiling is the limit or,
// without one, what the node can give. Nothing where the request is the limit, or where it would
// not be above the request.
std::optional<Bytes> memory_high(Bytes request, std::optional<Bytes> limit, Bytes allocatable,
                                 double factor);

}  // namespace headroom
