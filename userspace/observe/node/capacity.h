// SPDX-License-Identifier: Apache-2.0
// Capacity: what this machine has of CPUs and huge pages; memory, disk and pids come with the
// signals that watch them.
#pragma once

#include "judge/memory/memory_policy.h"

#include <headroom/cpuset.h>
#include <headroom/result.h>
#include <headroom/units.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>

namespace headroom::observe {

// Reads from sysfs what memory and huge pages each NUMA node has, as the kubelet's machine
// information has them.

// Nodes without memory are among them. Without node directories all memory is on node 0.
Result<MemorySizes> read_numa_memory(const std::filesystem::path& sys = "/sys",
                                     const std::filesystem::path& proc = "/proc");

// Fill rate: how fast this machine can hand out memory at worst; what the watch must outrun.

struct FillMeasurement {
  double bytes_per_second = 0;  // of the threads together
  std::int64_t threads = 1;
};

// The rates at which up to eight threads, one for each CPU online, first touch 4 KiB pages at the
// same time, each by its own CPU time, measured here and now on 32 MiB (some 10 ms). Huge pages
// fill faster, but are handed out two megabytes at a time only where they lie ready.
FillMeasurement measure_fill(const std::filesystem::path& sys = "/sys");

// Bytes per second of all CPUs that are online now, and no more than memory channels carry
// (fill_rate()).
std::int64_t fastest_fill(const FillMeasurement& measured,
                          const std::filesystem::path& sys = "/sys");

// `measured` bytes per second of `threads`, scaled to all CPUs; at least 4 GiB, and at most what
// twelve channels of DDR5-6400 carry for each socket.
std::int64_t fill_rate(double measured, std::int64_t threads, std::int64_t cpus,
                       std::int64_t sockets);

// Sockets with a CPU online; 1 if the kernel does not tell.
std::int64_t online_sockets(const std::filesystem::path& sys = "/sys");

// Those online; absent: not known.
std::optional<std::int64_t> online_cpus(const std::filesystem::path& sys = "/sys");

// Those there can be, online or not; empty: not known.
CpuSet possible_cpus(const std::filesystem::path& sys = "/sys");

// The number of possible NUMA nodes: the highest number plus one; one if the kernel reports none.
std::uint32_t possible_nodes(const std::filesystem::path& sys = "/sys");

// The NUMA nodes that have memory, of the first 64, as bits; 0: not known.
std::uint64_t memory_nodes(const std::filesystem::path& sys = "/sys");

// Page size → bytes set aside, of every size this kernel offers.
std::map<Bytes, Bytes> huge_page_pools(const std::filesystem::path& sys = "/sys");

}  // namespace headroom::observe
