// SPDX-License-Identifier: Apache-2.0
// The Summary API's small objects (k8s.io/kubelet/pkg/apis/stats/v1alpha1): its field names and
// units. Unknown values are left out, as with omitempty.
#pragma once

#include "report/eviction/audit_line.h"
#include "report/host/network_counters.h"
#include "report/view/node_view.h"

#include <headroom/disk_usage.h>
#include <headroom/snapshot.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace headroom::report {

using Json = nlohmann::ordered_json;

// The averages of one kind of one pressure file, in percent; absent: not known.
struct PsiAverages {
  double avg10 = 0, avg60 = 0, avg300 = 0;
};
using PsiKinds = std::array<std::optional<PsiAverages>, HR_PSI_KINDS>;
// Parses a pressure file such as cpu.pressure. A line without all three averages is absent.
PsiKinds parse_psi_averages(std::string_view text);

// A cgroup of the table, as input of the Summary API.
struct CgroupReading {
  const hr_record& record;
  std::uint64_t started_ns = HR_UNKNOWN;
  std::uint64_t usage_nanocores = HR_UNKNOWN;
  WallTime time;
  // The cgroup's directory. The averages of pressure are read from its files, because the kernel
  // updates them when they are read, and the records do not have them. "": they are not read.
  std::string directory = {};
};

// Each returns null if none of its values is known.
Json cpu_json(const CgroupReading& reading);     // CPUStats
Json memory_json(const CgroupReading& reading);  // MemoryStats
Json swap_json(const CgroupReading& reading);    // SwapStats
Json io_json(const CgroupReading& reading);      // IOStats

// NetworkStats: every device, and eth0's counters as the defaults, as in the kubelet. Null: no
// device.
Json network_json(const NetworkDevices& devices, WallTime time);

// SwapStats of the node, whose root cgroup has no memory.swap.current. Null: no swap, or unknown.
Json node_swap_json(const std::optional<Observation>& swap, WallTime time);

// FsStats of a filesystem whose bytes and inodes are two observations, either of which may be
// unknown.
Json fs_json(const std::optional<Observation>& bytes, const std::optional<Observation>& inodes,
             WallTime time);
// FsStats of files that were measured, on a filesystem whose bytes and inodes are the two
// observations. Null: not measured.
Json measured_fs_json(const FsUsage& used, const std::optional<Observation>& bytes,
                      const std::optional<Observation>& inodes, WallTime time);
// RlimitStats: maximum and current number of tasks of the node.
Json rlimit_json(const std::optional<Observation>& pids, WallTime time);

// Adds `value` unless it is null.
void put(Json& object, const char* name, Json value);
// startTime, unless unknown.
void put_start(Json& object, std::uint64_t started_ns);

}  // namespace headroom::report
