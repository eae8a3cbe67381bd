// SPDX-License-Identifier: Apache-2.0
#include "judge/allocatable/cgroup/memory_qos.h"

#include <cmath>

namespace headroom {
namespace {

constexpr Bytes kPage{4096};

}  // namespace

void protect_pod_memory(CgroupValues& values, QosClass qos, Bytes request,
                        const MemoryQos& policy) {
  if (policy.reservation != MemoryQos::Reservation::kTiered || request <= Bytes{0}) return;
  (qos == QosClass::kGuaranteed ? values.memory_min : values.memory_low) = request;
}

void protect_container_memory(CgroupValues& values, QosClass qos, Bytes request,
                              const MemoryQos& policy) {
  using enum MemoryQos::Reservation;
  if (policy.reservation == kNone || (policy.reservation == kTiered && request <= Bytes{0}))
    values.memory_min = values.memory_low = Bytes{0};
  else
    protect_pod_memory(values, qos, request, policy);
}

std::optional<Bytes> memory_high(Bytes request, std::optional<Bytes> limit, Bytes allocatable,
                                 double factor) {
  if (limit && *limit == request) return std::nullopt;
  const auto from = static_cast<double>(request.count);
  const auto to = static_cast<double>((limit ? *limit : allocatable).count);
  const double pages = std::floor((from + (to - from) * factor) / static_cast<double>(kPage.count));
  const Bytes high{static_cast<std::int64_t>(pages) * kPage.count};
  if (high <= request) return std::nullopt;
  return high;
}

}  // namespace headroom
