// SPDX-License-Identifier: Apache-2.0
// Placement: chooses the node of each pod by the rules and in the arithmetic of
// judge/admission/scheduler.h, from sums that are kept for each node.
//
// As the kube-scheduler does, it looks on a large fleet for a limited number of nodes on which the
// pod fits, beginning where it stopped the last time (numFeasibleNodesToFind, v1.36).
#pragma once

#include "simulate/workload/pod_plan.h"

#include <headroom/pod.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace headroom::simulate {

class Placement {
 public:
  struct NodeSums {
    std::int64_t milli_cpu = 0, memory = 0, max_pods = 0;  // allocatable
    // Requested by the pods on it; `scored_…`: with the scheduler's defaults.
    std::int64_t used_cpu = 0, used_memory = 0, pods = 0;
    std::int64_t scored_cpu = 0, scored_memory = 0;
    // It gets no BestEffort pod: they do not tolerate the taint of memory pressure, and koordinator
    // offers them no memory.
    bool memory_pressure = false, no_batch_memory = false;
    // What pods that ran before the simulation began may hold: they bring their memory with them.
    std::int64_t unused_memory = std::numeric_limits<std::int64_t>::max();
  };

  explicit Placement(std::vector<NodeSums> nodes) : nodes_(std::move(nodes)) {}

  // Counts the pod on the node that is chosen; absent: it fits on none.
  std::optional<std::uint32_t> place(const PodPlan& pod);
  void remove(std::uint32_t node, std::int64_t milli_cpu, Bytes memory_request);
  void set_memory_pressure(std::uint32_t node, bool value) { nodes_[node].memory_pressure = value; }
  void set_no_batch_memory(std::uint32_t node, bool value) { nodes_[node].no_batch_memory = value; }

 private:
  std::size_t nodes_to_find() const;

  std::vector<NodeSums> nodes_;
  std::size_t start_ = 0;
};

}  // namespace headroom::simulate
