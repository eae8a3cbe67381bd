// SPDX-License-Identifier: Apache-2.0
// Pods for tests of the CPU policy: Guaranteed, as long as no request is changed afterwards.
#pragma once

#include <headroom/pod.h>
#include <headroom/quantity.h>

#include <string>
#include <utility>
#include <vector>

namespace headroom {

inline Container container(const std::string& name, const char* cpu, bool sidecar = false) {
  const ResourceList resources{{"cpu", *Quantity::parse(cpu)}, {"memory", Quantity::of(1 << 20)}};
  return {.name = name, .requests = resources, .limits = resources, .sidecar = sidecar};
}

inline Pod pod_of(const std::string& uid, std::vector<Container> init,
                  std::vector<Container> apps) {
  Pod pod;
  pod.uid = pod.name = uid;
  pod.init_containers = std::move(init);
  pod.containers = std::move(apps);
  return pod;
}

}  // namespace headroom
