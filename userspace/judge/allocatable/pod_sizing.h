// SPDX-License-Identifier: Apache-2.0
// PodSizing: what the operator decides about the cgroups of every pod; read from the fields of a
// KubeletConfiguration and checked by its rules (kubelet: cm/helpers_linux.go, KEP-2570,
// apis/config/validation).
#pragma once

#include "judge/allocatable/cgroup/cgroup_values.h"
#include "judge/allocatable/cgroup/cpu_conversion.h"
#include "judge/allocatable/cgroup/memory_qos.h"
#include "judge/allocatable/setting_error.h"

#include <headroom/units.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

namespace headroom {

enum class SwapBehavior : std::uint8_t { kNoSwap, kLimitedSwap };

struct PodSizing {
  WeightFormula weights = WeightFormula::kLinear;
  bool cpu_quota = true;
  Microseconds cpu_period{100'000};
  std::optional<Tasks> pids_limit{};                         // absent: unlimited
  MemoryQos memory_qos{};                                    // off
  std::optional<SwapBehavior> swap = SwapBehavior::kNoSwap;  // absent: no swap controller
  bool oom_kills_group = true;
  friend bool operator==(const PodSizing&, const PodSizing&) = default;
};

// As configured; each comment names the field.
struct PodSizingConfig {
  bool cpu_quota = true;                                 // cpuCFSQuota
  Duration cpu_period = std::chrono::milliseconds(100);  // cpuCFSQuotaPeriod
  bool custom_period_gate = false;                       // featureGates.CustomCPUCFSQuotaPeriod
  std::int64_t pids_limit = -1;                          // podPidsLimit
  std::optional<bool> memory_qos_gate{};                 // featureGates.MemoryQoS
  std::optional<double> throttling_factor{};             // memoryThrottlingFactor; absent: none
  std::string reservation_policy{};                      // memoryReservationPolicy; "": None
  std::string swap_behavior{};                           // memorySwap.swapBehavior
  bool single_process_oom_kill = false;                  // singleProcessOOMKill
};

// Returns every error, not only the first. Both keys of memory QoS count unless the gate MemoryQoS
// is off, as in 1.37, where it is on by default.
tl::expected<PodSizing, std::vector<SettingError>> pod_sizing(const PodSizingConfig& configured,
                                                              WeightFormula weights);

}  // namespace headroom
