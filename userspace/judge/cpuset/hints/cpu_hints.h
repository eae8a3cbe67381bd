// SPDX-License-Identifier: Apache-2.0
// Hints: which sets of NUMA nodes could give what is asked, and which of them one would prefer
// (kubelet: cm/cpumanager/policy_static.go).
#pragma once

#include "judge/cpuset/allocation/take_cpus.h"

#include <headroom/cpuset.h>
#include <headroom/pod.h>
#include <headroom/topology.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

struct NumaHint {
  std::optional<NodeSet> nodes{};  // absent: any
  bool preferred = false;
  friend bool operator==(const NumaHint&, const NumaHint&) = default;
};
using HintList = std::vector<NumaHint>;

// What one provider (CPUs, memory, devices) says, by resource. No list: it does not care. An empty
// list: it cannot be had anywhere.
using ProviderHints = std::map<std::string, std::optional<HintList>>;

struct HintRequest {
  int count = 0;
  CpuSet available{};
  CpuSet reusable{};  // must lie inside every hint
  bool align_by_socket = false;
};

// No more subsets of nodes than this are looked at: all there are of 16 nodes. The kubelet looks at
// all 2^nodes, and so refuses to start on more than 8.
inline constexpr int kMaxHintSubsets = (1 << 16) - 1;

// Narrow subsets first; empty where all nodes together have too few. Where there are more subsets
// than kMostHintSubsets the search starts at the narrowest that could do, and the nodes with most
// free CPUs are a hint whatever else was reached.
HintList cpu_hints(const Topology& topology, const HintRequest& request,
                   WorkCounter* work = nullptr);

// Device hints: the NUMA nodes near the devices that a pod names in its annotations, as a kubelet's
// device plugin would hint at them (kubelet: cm/topologymanager).

// PCI addresses, separated by commas: "0000:3b:00.0,0000:3b:00.1".
inline constexpr std::string_view kNearDevicesAnnotation = "headroom.io/near-devices";

// By PCI address. Devices whose firmware reports no NUMA node are missing.
using DeviceNodes = std::map<std::string, std::int64_t, std::less<>>;

// As the pod names them; none where it names none.
std::vector<std::string> requested_devices(const Pod& pod);

// For each device a preference for the node it is on; where that has no CPUs, for the nodes with
// CPUs that are nearest to it. Any other node will do. Devices that are not known do not count.
ProviderHints device_hints(const DeviceNodes& devices, const NumaMap& numa, const Pod& pod);

}  // namespace headroom
