// SPDX-License-Identifier: Apache-2.0
// The Summary API's small objects (k8s.io/kubelet/pkg/apis/stats/v1alpha1): its field names and
// units. Unknown values are left out, as with omitempty.
#pragma once

#include "report/eviction/audit_line.h"
#include "report/view/node_view.h"

#include <headroom/snapshot.h>

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace headroom::report {

using Json = nlohmann::ordered_json;

// A cgroup of the table, as input of the Summary API.
struct CgroupReading {
  const hr_record& record;
  std::uint64_t started_ns = HR_UNKNOWN;
  std::uint64_t usage_nanocores = HR_UNKNOWN;
  WallTime time;
};

// Each is null when nothing of it is known.
Json cpu_json(const CgroupReading& reading);      // CPUStats
Json memory_json(const CgroupReading& reading);   // MemoryStats
Json swap_json(const CgroupReading& reading);     // SwapStats
Json io_json(const CgroupReading& reading);       // IOStats
Json process_json(const CgroupReading& reading);  // ProcessStats

// FsStats of a filesystem whose bytes and inodes are two observations, either of which may be
// unknown.
Json fs_json(const std::optional<Observation>& bytes, const std::optional<Observation>& inodes,
             WallTime time);
// RlimitStats: maximum and current number of tasks of the node.
Json rlimit_json(const std::optional<Observation>& pids, WallTime time);

// Adds `value` unless it is null.
void put(Json& object, const char* name, Json value);
// startTime, unless unknown.
void put_start(Json& object, std::uint64_t started_ns);

}  // namespace headroom::report
