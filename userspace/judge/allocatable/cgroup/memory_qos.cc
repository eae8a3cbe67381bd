// SPDX-License-Identifier: Apache-2.0
#include "judge/allocatable/cgroup/memory_qos.h"

#include <cmath>

namespace headroom {
namespace {

constexpr Bytes kPage{4096};

}  // namespace

void protect_memory(CgroupValues& values, QosClass qos, Bytes request, const MemoryQos& policy) {
  if (request <= Bytes{0}) return;
  switch (policy.reservation) {
    case MemoryQos::Reservation::kNone:
      return;
    case MemoryQos::Reservation::kEvery:
      values.memory_min = request;
      return;
    case MemoryQos::Reservation::kTiered:
      if (qos == QosClass::kGuaranteed) values.memory_min = request;
      if (qos == QosClass::kBurstable) values.memory_low = request;
      return;
  }
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
