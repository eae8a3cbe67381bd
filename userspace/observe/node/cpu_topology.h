// SPDX-License-Identifier: Apache-2.0
// Reads this machine's CPU topology from sysfs, and which devices belong to which NUMA node.
//
// Unusual machines are read as well as possible: without node directories all CPUs are on node 0,
// without an L3 cache the socket stands for it, and a CPU without topology is a core of its own.
#pragma once

#include <headroom/cpuset.h>
#include <headroom/result.h>
#include <headroom/topology.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace headroom::observe {

struct PciDevice {
  std::string address;      // "0000:3b:00.0"
  std::optional<int> numa;  // absent: the firmware does not say
  friend bool operator==(const PciDevice&, const PciDevice&) = default;
};

struct MachineCpus {
  Topology topology;  // of the CPUs that are online
  CpuSet offline;     // present, but not online
  CpuSet isolated;    // isolcpus=, and isolated cpuset partitions
  CpuSet nohz_full;
};

Result<MachineCpus> read_topology(const std::filesystem::path& sys = "/sys");

// The CPUs online now: one small file, to notice a change by.
Result<CpuSet> read_online_cpus(const std::filesystem::path& sys = "/sys");

// By address.
std::vector<PciDevice> read_pci_devices(const std::filesystem::path& sys = "/sys");

}  // namespace headroom::observe
