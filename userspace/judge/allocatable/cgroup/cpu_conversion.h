// SPDX-License-Identifier: Apache-2.0
// Conversions between the units of CPU: milliCPU for a pod, shares for cgroup v1 and OCI, weight
// and quota for cgroup v2 (kubelet: cm/helpers_linux.go).
#pragma once

#include "judge/allocatable/cgroup/cgroup_values.h"

#include <headroom/units.h>

#include <compare>
#include <cstdint>
#include <optional>

namespace headroom {

// The unit of cgroup v1, which OCI runtimes still take: 1024 per CPU, 2 … 262144.
struct CpuShares {
  std::uint64_t count = 0;
  friend constexpr auto operator<=>(CpuShares, CpuShares) = default;
};
inline constexpr CpuShares kMinShares{2};
inline constexpr CpuShares kMaxShares{262'144};

// One formula is applied at every level: two of them distort siblings that were sized by different
// ones (kubernetes/kubernetes 131216).
enum class WeightFormula : std::uint8_t {
  kLinear,     // the kubelet's: 1 CPU is 39, beside systemd's default of 100
  kQuadratic,  // runc from 1.3.2, crun from 1.23: 1 CPU is 100
};

CpuShares shares_of(MilliCpu cpu);

// CPU time per period, at least 1 ms. Nothing: no CPU was named, so there is no quota.
std::optional<Microseconds> directory_quota(MilliCpu cpu,
                                            Microseconds period = Microseconds(100'000));

CpuWeight weight_of(CpuShares shares, WeightFormula formula);

}  // namespace headroom
