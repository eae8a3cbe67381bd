// SPDX-License-Identifier: Apache-2.0
// Device hints: the NUMA nodes near the devices that a pod names in its annotations, as a kubelet's
// device plugin would hint at them (kubelet: cm/topologymanager).
#pragma once

#include "judge/cpuset/hints/cpu_hints.h"

#include <headroom/pod.h>
#include <headroom/topology.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

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
