// SPDX-License-Identifier: Apache-2.0
// Whether a node has enough resources left for a pod.
#pragma once

#include "judge/admission/node_state.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace headroom {

struct Shortage {
  std::string resource;
  std::int64_t requested = 0;
  std::int64_t used = 0;
  std::optional<std::int64_t> capacity;  // absent: how much there is to give is not known

  // How much must be freed; nothing where that is not known.
  std::optional<std::int64_t> missing() const;
  friend bool operator==(const Shortage&, const Shortage&) = default;
};

// What becomes of extended resources that the node does not know.
enum class UnknownResources : std::uint8_t {
  kUnknownIsShort,  // the scheduler: no node like that
  kIgnoreUnknown,   // the kubelet: another component is responsible for it, such as the cluster
};

// Every resource that does not suffice: "pods" first, then by name. What a pod asks nothing of, it
// does not lack, however overcommitted.
std::vector<Shortage> shortages(const PodOnNode& pod, const NodeState& node,
                                UnknownResources unknown_resources);

}  // namespace headroom
