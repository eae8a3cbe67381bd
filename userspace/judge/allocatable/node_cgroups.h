// SPDX-License-Identifier: Apache-2.0
// The cgroups between the root and the pods, with the values they should have: kubepods, the QoS
// tiers in it, and the reserved slices beside it (kubelet: cm/node_container_manager_linux.go,
// cm/qos_container_manager_linux.go, KEP-2570).
#pragma once

#include "judge/allocatable/allocatable_policy.h"
#include "judge/allocatable/amounts.h"
#include "judge/allocatable/cgroup/cgroup_values.h"
#include "judge/allocatable/node_allocatable.h"
#include "judge/allocatable/pod_sizing.h"

#include <headroom/pod.h>
#include <headroom/units.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// The sums of the active pods' requests for each class, from which the tiers are computed.
struct QosTierSums {
  MilliCpu burstable_cpu;
  Bytes burstable_memory;
  Bytes guaranteed_memory;
  friend bool operator==(const QosTierSums&, const QosTierSums&) = default;
};
QosTierSums qos_tier_sums(std::span<const Pod* const> active);

struct NodeCgroup {
  enum class Role : std::uint8_t { kPods, kBurstable, kBestEffort, kKubeReserved, kSystemReserved };
  Role role = Role::kPods;
  std::string path;  // in the driver's spelling
  CgroupValues values;
};
constexpr std::string_view name(NodeCgroup::Role role) {
  switch (role) {
    case NodeCgroup::Role::kPods:
      return "kubepods";
    case NodeCgroup::Role::kBurstable:
      return "burstable";
    case NodeCgroup::Role::kBestEffort:
      return "besteffort";
    case NodeCgroup::Role::kKubeReserved:
      return "kube-reserved";
    case NodeCgroup::Role::kSystemReserved:
      return "system-reserved";
  }
  return "";
}

// Parents before children. Cgroups that are not managed (no cgroupsPerQOS, a reservation that is
// not enforced) are left out.
std::vector<NodeCgroup> node_cgroups(const AllocatablePolicy& policy, const Amounts& capacity,
                                     const NodeAllocatable& node, const PodSizing& sizing,
                                     const QosTierSums& sums);

}  // namespace headroom
