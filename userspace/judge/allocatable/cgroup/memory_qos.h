// SPDX-License-Identifier: Apache-2.0
// MemoryQos: requests held by the kernel, and throttling before the limit (KUBELET.md 3.7, the
// kubelet's gate MemoryQoS).
#pragma once

#include "judge/allocatable/cgroup/cgroup_values.h"

#include <headroom/pod.h>
#include <headroom/units.h>

#include <cstdint>
#include <optional>

namespace headroom {

// Off by default. The kubelet's variants:
// 1.22 … 1.35: kEvery and a throttling factor, 0.9 by default;
// 1.36: memoryReservationPolicy (kNone by default, or kTiered) and the factor;
// 1.37: the same, and no factor unless one is set.
struct MemoryQos {
  enum class Reservation : std::uint8_t {
    kNone,
    kEvery,   // memory.min = request, whatever the class
    kTiered,  // Guaranteed: memory.min; Burstable: memory.low, which gives way before an OOM kill
  };
  Reservation reservation = Reservation::kNone;
  std::optional<double> throttling_factor;  // memoryThrottlingFactor: above 0, at most 1
  friend bool operator==(const MemoryQos&, const MemoryQos&) = default;
};

// Adds what holds `request` for a pod or container of the class. Zero: nothing to hold.
void protect_memory(CgroupValues& values, QosClass qos, Bytes request, const MemoryQos& policy);

// memory.high: request + factor × (ceiling - request), in whole pages; the ceiling is the limit or,
// without one, what the node can give. Nothing where the request is the limit, or where it would
// not be above the request.
std::optional<Bytes> memory_high(Bytes request, std::optional<Bytes> limit, Bytes allocatable,
                                 double factor);

}  // namespace headroom
