// SPDX-License-Identifier: Apache-2.0
// Capacity: what this machine has of CPUs and huge pages; memory, disk and pids come with the
// signals that watch them.
#pragma once

#include <headroom/cpuset.h>
#include <headroom/units.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>

namespace headroom::observe {

// Those online; absent: not known.
std::optional<std::int64_t> online_cpus(const std::filesystem::path& sys = "/sys");

// Those there can be, online or not; empty: not known.
CpuSet possible_cpus(const std::filesystem::path& sys = "/sys");

// The number of possible NUMA nodes: the highest number plus one; one if the kernel reports none.
std::uint32_t possible_nodes(const std::filesystem::path& sys = "/sys");

// Page size → bytes set aside, of every size this kernel offers.
std::map<Bytes, Bytes> huge_page_pools(const std::filesystem::path& sys = "/sys");

}  // namespace headroom::observe
