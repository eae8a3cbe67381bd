// SPDX-License-Identifier: Apache-2.0
#include "judge/cpuset/policy/cpu_request.h"

#include "judge/resources/pod_resources.h"
#include "judge/resources/qos.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace headroom {

int exclusive_cpus_requested(const Pod& pod, const Container& container) {
  const auto request = container.requests.find("cpu");
  if (request == container.requests.end() || request->second.sign() <= 0) return 0;
  if (qos_class(pod) != QosClass::kGuaranteed) return 0;
  // The kubelet gives a pod with resources of its own no exclusive CPUs, unless its alpha gate
  // PodLevelResourceManagers (1.36) is on.
  if (has_pod_level_resources(pod)) return 0;
  if (request->second != Quantity::of(request->second.value())) return 0;
  constexpr std::int64_t kMax = std::numeric_limits<int>::max();
  return static_cast<int>(std::min(request->second.value(), kMax));
}

int exclusive_cpus_requested(const Pod& pod) {
  std::int64_t running = 0;  // sidecars so far, then apps
  std::int64_t starting = 0;
  for (const Container& container : pod.init_containers) {
    const int wanted = exclusive_cpus_requested(pod, container);
    if (container.sidecar)
      running += wanted;
    else
      starting = std::max(starting, running + wanted);
  }
  for (const Container& container : pod.containers)
    running += exclusive_cpus_requested(pod, container);
  constexpr std::int64_t kMax = std::numeric_limits<int>::max();
  return static_cast<int>(std::min(std::max(running, starting), kMax));
}

}  // namespace headroom
