// SPDX-License-Identifier: Apache-2.0
// MemoryView: the memory of each NUMA node and the containers it is assigned to, for headroomctl
// (as JSON) and the metrics.
#pragma once

#include "judge/memory/memory_state.h"

#include <headroom/topology.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::report {

struct ContainerMemoryView {
  std::string pod_namespace;  // "": not known
  std::string pod;            // its name; its uid if the name is unknown
  std::string uid;
  std::string container;
  MemoryBlocks blocks{};  // none: refused, or an init container that has finished
  NodeSet runs_on{};      // cpuset.mems.effective of its cgroup; empty: no cgroup (yet)
  std::string refusal{};  // the reason; "": not refused
};

struct MemoryView {
  std::string_view mode{};    // "off", "observe", "enforce"
  std::string_view policy{};  // "None", "Static"
  MachineMemory nodes{};
  std::vector<ContainerMemoryView> containers{};

  // As the kubelet counts: containers to be pinned, and those that could not be.
  std::uint64_t pinning_requests = 0;
  std::uint64_t pinning_errors = 0;
  // headroom's own counters.
  std::uint64_t writes = 0;    // of cpuset.mems
  std::uint64_t failed = 0;    // writes that were refused or had no effect
  std::uint64_t repaired = 0;  // cpuset.mems that another program had changed
  bool unsaved = false;        // the state file is out of date
};

std::string memory_json(const MemoryView& view);

}  // namespace headroom::report
