// SPDX-License-Identifier: Apache-2.0
// PodSizing: the operator's settings for the cgroups of every pod, read from the fields of a
// KubeletConfiguration and checked by its rules (kubelet: cm/helpers_linux.go, KEP-2570,
// apis/config/validation); and the values of each pod's cgroup by it.
#pragma once

#include "judge/allocatable/amounts.h"
#include "judge/allocatable/cgroup/cgroup_values.h"

#include <headroom/pod.h>
#include <headroom/units.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

namespace headroom {

// MemoryQos: requests held by the kernel, and throttling before the limit (KEP-2570, the
// kubelet's gate MemoryQoS).

// The keys memoryReservationPolicy and memoryThrottlingFactor, as in 1.37: by default requests are
// not protected and nothing is throttled. (Until 1.35 every request was a memory.min.)
struct MemoryQos {
  enum class Reservation : std::uint8_t {
    kUnmanaged,  // neither the gate nor the policy is set: memory.min and memory.low are left alone
    kNone,       // no request is protected: both are zero
    kTiered,  // Guaranteed: memory.min; Burstable: memory.low, which gives way before an OOM kill
  };
  Reservation reservation = Reservation::kUnmanaged;
  std::optional<double> throttling_factor;  // memoryThrottlingFactor: above 0, at most 1
  friend bool operator==(const MemoryQos&, const MemoryQos&) = default;
};

// Adds the values that protect `request` of a pod of the class. Zero: no protection.
void protect_pod_memory(CgroupValues& values, QosClass qos, Bytes request, const MemoryQos& policy);
// The same for a container; no protection is written as zero.
void protect_container_memory(CgroupValues& values, QosClass qos, Bytes request,
                              const MemoryQos& policy);

// memory.high: request + factor × (ceiling - request), in whole pages; the ceiling is the limit or,
// without one, the node's allocatable. Absent if the request is the limit, or if the result would
// not be above the request.
std::optional<Bytes> memory_high(Bytes request, std::optional<Bytes> limit, Bytes allocatable,
                                 double factor);

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

// The configured values; each comment names the field.
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

// The cgroup values of a pod and its containers, by their requests and limits
// (kubelet: cm/helpers_linux.go, KEP-2570).

// The node's memory and swap.
struct NodeMemory {
  Bytes capacity;
  Bytes swap;
  Bytes allocatable;                   // for memory.high without a limit
  std::vector<Bytes> huge_page_sizes;  // those of the kernel; sizes without a limit are set to 0
  Bytes page{4096};                    // of the kernel: memory.high is rounded down to it
};

// Which CPUs the container, or any container of the pod, runs on. Exclusive CPUs are never
// throttled (1.33, kubernetes/kubernetes 70585).
enum class Cpus : std::uint8_t { kShared, kExclusive };

CgroupValues pod_cgroup(const Pod& pod, const PodSizing& sizing, const NodeMemory& node,
                        Cpus cpus = Cpus::kShared);

// For one of the pod's containers: the values that the runtime writes.
CgroupValues container_cgroup(const Pod& pod, const Container& container, const PodSizing& sizing,
                              const NodeMemory& node, Cpus cpus = Cpus::kShared);

// A container's share of the node's swap: request / memory × swap. None for critical pods, for
// other classes than Burstable, and for containers whose request equals their limit (enhancements
// 2400).
Bytes swap_share(const Pod& pod, const Container& container, const NodeMemory& node);

}  // namespace headroom
