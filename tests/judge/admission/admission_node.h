// SPDX-License-Identifier: Apache-2.0
// Pods and nodes for tests of admission and placing, from few words.
#pragma once

#include "judge/admission/node_state.h"

#include <string>

namespace headroom::test {

struct Asks {
  const char* cpu = nullptr;
  const char* memory = nullptr;
  std::int32_t priority = 0;
};

inline Quantity quantity(const char* text) {
  return *Quantity::parse(text);
}

// One container; with `limited` its limits are its requests: Guaranteed.
inline Pod pod_asking(const std::string& name, Asks asks = {}, bool total_limits = false) {
  Pod pod;
  pod.name = name;
  pod.uid = "uid-" + name;
  pod.priority = asks.priority;
  Container container;
  container.name = "c";
  if (asks.cpu) container.requests.emplace("cpu", quantity(asks.cpu));
  if (asks.memory) container.requests.emplace("memory", quantity(asks.memory));
  if (total_limits) container.limits = container.requests;
  pod.containers.push_back(std::move(container));
  return pod;
}

// 4 CPUs, 8 GiB, 110 pods.
inline NodeState node_named(const std::string& name) {
  NodeState node;
  node.name = name;
  node.labels = {{"kubernetes.io/hostname", name}};
  node.allocatable = {{"cpu", 4000},
                      {"memory", std::int64_t{8} << 30},
                      {"ephemeral-storage", std::int64_t{100} << 30},
                      {"pods", 110}};
  return node;
}

}  // namespace headroom::test
