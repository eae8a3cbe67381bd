// SPDX-License-Identifier: Apache-2.0
// Parts of the status document: waits, the BPF programs that observe them, slices, the order of
// eviction, headroom-kube.
#pragma once

#include "judge/forecast/peak_forecast.h"
#include "report/view/node_view.h"
#include "report/view/pod_index.h"
#include "report/view/waits_view.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>

namespace headroom::report {

// The status file of headroom-kube. Read on request, never on the loop's thread.

// {"kubelet": {...}, "api": {...}}; null if the file is missing, larger than 1 MiB, or not a JSON
// object.
nlohmann::ordered_json kubernetes_json(const std::filesystem::path& file);

// {"global": {"ns": …, "count": …, "p99_ns": …}, …}; causes that never occurred are left out.
nlohmann::ordered_json stalls_json(const hr_stalls& stalls);
nlohmann::ordered_json waits_json(const hr_waits& waits);
// In nanoseconds, by cause; null: unknown.
nlohmann::ordered_json cpu_waits_json(const CpuWaits* waits);
// {"stalls": …, "throttled": …} of all cgroups together; null: not watched. "cpu_pairs" and
// "memory_pairs": the pods that waited longest, and the pods that had what they waited for.
nlohmann::ordered_json node_waits_json(const NodeWaits& waits, const CgroupTable& table);
// memory.available with swap counted in, in bytes, and where the memory is; null: no swap, and
// thrashAware is false.
nlohmann::ordered_json swap_json(const std::optional<SwapRoom>& room);
// For each pod of the table its place among those that would be evicted if memory.available fell
// below its threshold now: 1 is the first. Absent: critical, already being evicted, without a
// process, or without a reading. What a kill would release is not considered.
std::vector<std::optional<std::uint32_t>> eviction_order(const NodeView& node,
                                                         const CgroupTable& cgroups,
                                                         const PodIndex& index);
// For each predictor the forecast of the pods' memory peak in the next hour, and how earlier ones
// compared. Empty: none yet.
nlohmann::ordered_json memory_forecasts_json(const PeakForecast::Records& records);
nlohmann::ordered_json programs_json(const Programs& programs);

}  // namespace headroom::report
