// SPDX-License-Identifier: Apache-2.0
// The cgroup values a pod and its containers should have, by what they ask for
// (kubelet: cm/helpers_linux.go, KEP-2570).
#pragma once

#include "judge/allocatable/cgroup/cgroup_values.h"
#include "judge/allocatable/pod_sizing.h"

#include <headroom/pod.h>
#include <headroom/units.h>

#include <cstdint>
#include <vector>

namespace headroom {

// What the node has to give.
struct NodeMemory {
  Bytes capacity;
  Bytes swap;
  Bytes allocatable;                   // for memory.high without a limit
  std::vector<Bytes> huge_page_sizes;  // those the kernel offers: the unnamed ones are set to 0
  Bytes page{4096};                    // of the kernel: memory.high is rounded down to it
};

// Which CPUs the container, or any container of the pod, runs on. Exclusive CPUs are never
// throttled (1.33, kubernetes/kubernetes 70585).
enum class Cpus : std::uint8_t { kShared, kExclusive };

CgroupValues pod_cgroup(const Pod& pod, const PodSizing& sizing, const NodeMemory& node,
                        Cpus cpus = Cpus::kShared);

// For one of the pod's containers: the values that the runtime is given and writes.
CgroupValues container_cgroup(const Pod& pod, const Container& container, const PodSizing& sizing,
                              const NodeMemory& node, Cpus cpus = Cpus::kShared);

// A container's part of the node's swap: request / memory × swap. None for critical pods, for other
// classes than Burstable, and for containers whose request equals their limit (enhancements 2400).
Bytes swap_share(const Pod& pod, const Container& container, const NodeMemory& node);

}  // namespace headroom
