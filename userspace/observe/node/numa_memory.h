// SPDX-License-Identifier: Apache-2.0
// Reads from sysfs what memory and huge pages each NUMA node has, as the kubelet's machine
// information has them.
#pragma once

#include "judge/memory/memory_policy.h"

#include <headroom/result.h>

#include <filesystem>

namespace headroom::observe {

// Nodes without memory are among them. Without node directories all memory is on node 0.
Result<MemorySizes> read_numa_memory(const std::filesystem::path& sys = "/sys",
                                     const std::filesystem::path& proc = "/proc");

}  // namespace headroom::observe
