// SPDX-License-Identifier: Apache-2.0
// Machines as the vectors write them, and CPU lists.
#pragma once

#include <headroom/cpuset.h>
#include <headroom/topology.h>

#include <string>

namespace headroom::vectors {

// The machine of this name in cpu_topologies.jsonl. Throws where there is none.
const Topology& topology_named(const std::string& name);

// Throws what the parser complains of.
CpuSet cpus_of(const std::string& list);

}  // namespace headroom::vectors
