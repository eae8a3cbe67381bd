// SPDX-License-Identifier: Apache-2.0
#include "judge/resources/qos.h"

#include "judge/resources/pod_resources.h"

#include <headroom/quantity.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace headroom {
namespace {

constexpr std::array<std::string_view, 2> kCounted{"cpu", "memory"};

// What counts towards the class: cpu and memory above zero. A zero is as if it had not been said.
struct Sums {
  std::array<Quantity, kCounted.size()> totals;

  void add(const ResourceList& list) {
    for (std::size_t i = 0; i < kCounted.size(); ++i) {
      const auto entry = list.find(kCounted[i]);
      if (entry != list.end() && entry->second.sign() > 0) totals[i] += entry->second;
    }
  }
  bool none() const {
    return std::all_of(totals.begin(), totals.end(), [](const auto& t) { return t.is_zero(); });
  }
  friend bool operator==(const Sums&, const Sums&) = default;
};

bool fully_limited(const Container& container) {
  return std::all_of(kCounted.begin(), kCounted.end(), [&](std::string_view resource) {
    const auto limit = container.limits.find(resource);
    return limit != container.limits.end() && limit->second.sign() > 0;
  });
}

}  // namespace

QosClass qos_class(const Pod& pod) {
  if (pod.declared_qos) return *pod.declared_qos;

  Sums requests;
  Sums limits;
  bool all_limited = true;
  const auto count = [&](const Container& container) {
    requests.add(container.requests);
    limits.add(container.limits);
    all_limited = all_limited && fully_limited(container);
  };
  if (has_pod_level_resources(pod)) {
    count(*pod.pod_level);
  } else {
    std::for_each(pod.init_containers.begin(), pod.init_containers.end(), count);
    std::for_each(pod.containers.begin(), pod.containers.end(), count);
  }
  if (requests.none() && limits.none()) return QosClass::kBestEffort;
  // Sums, not container by container: {request 1, limit 2} beside {2, 1} is Guaranteed upstream.
  return all_limited && requests == limits ? QosClass::kGuaranteed : QosClass::kBurstable;
}

}  // namespace headroom
