// SPDX-License-Identifier: Apache-2.0
// Waits: what tasks waited for since observation began, by cgroup and in total.
#pragma once

#include <headroom/bpf/stall_abi.h>
#include <headroom/units.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace headroom {

inline constexpr std::array<std::string_view, HR_STALL_CAUSES> kStallCauseNames{
    "global", "limit", "high", "refault", "compaction"};

// The causes that are the node's own: a pod that waits at its own limit does not show a shortage of
// the node, and compaction does not either.
inline constexpr std::array<hr_stall_cause, 2> kNodeWideCauses{HR_STALL_GLOBAL, HR_STALL_REFAULT};

// Why a pod waited for a CPU.
enum class CpuWaitCause : std::uint8_t {
  kQuota,        // cpu.max of the pod or of a cgroup in it
  kParentQuota,  // cpu.max of a cgroup above the pod
  kCpuset,       // the CPUs it may use were busy, and CPUs that it may not use were idle
  kWeight,       // the node was busy with cgroups of a larger cpu.weight
  kNode,         // the node had no idle CPU
  kInterrupts,   // interrupts, or the hypervisor (steal), took its CPUs
  kPlacement,    // a CPU that it may use was idle: the scheduler had not moved its task yet
  kUnknown,      // a reading that the causes follow from is missing
};
inline constexpr std::size_t kCpuWaitCauses = 8;
inline constexpr std::array<std::string_view, kCpuWaitCauses> kCpuWaitCauseNames{
    "quota", "parent_quota", "cpuset", "weight", "node", "interrupts", "placement", "unknown"};
constexpr std::string_view name(CpuWaitCause cause) {
  return kCpuWaitCauseNames[static_cast<std::size_t>(cause)];
}

// A pod's time with a task that waited for a CPU, by cause, in nanoseconds. The sum is the "some"
// total of cpu.pressure.
struct CpuWaits {
  std::array<std::uint64_t, kCpuWaitCauses> ns{};

  std::uint64_t& operator[](CpuWaitCause cause) { return ns[static_cast<std::size_t>(cause)]; }
  std::uint64_t operator[](CpuWaitCause cause) const { return ns[static_cast<std::size_t>(cause)]; }
  friend bool operator==(const CpuWaits&, const CpuWaits&) = default;
};

// A pod's use of CPUs during the last window.
struct CpuUse {
  MilliCpu used;
  // Of the time, in millionths: how much less the pod that lost most to the node's shortage would
  // have lost without this one. 0: it ran on CPUs of its own, or no pod lost any.
  std::int64_t held_up = 0;
  friend bool operator==(const CpuUse&, const CpuUse&) = default;
};

// The value of ids[i] is values[i]. A cgroup that never waited is not listed.
template <class Value>
struct ByCgroup {
  std::span<const std::uint64_t> ids;
  std::span<const Value> values;
  // Waits since observation began that were charged to no cgroup, because the table was full. If
  // there were any, it is unknown whether a cgroup that is not listed ever waited.
  std::uint64_t lost = 0;

  const Value* find(std::uint64_t id) const {
    for (std::size_t i = 0; i < ids.size(); ++i)
      if (ids[i] == id) return &values[i];
    return nullptr;
  }
};

// A pod that waited, and a pod that had what it waited for meanwhile: CPUs, or memory.
struct WaitPair {
  CgroupId holder;  // the pod's cgroup; 0: the kernel's threads and processes outside pods
  CgroupId waiter;
  std::uint64_t ns = 0;
};

struct Waits {
  // Absent: not observed, or only the node was read.
  std::optional<ByCgroup<hr_stalls>> stalls;        // for memory
  std::optional<ByCgroup<hr_throttles>> throttles;  // for CPU quota
  std::optional<ByCgroup<CpuWaits>> cpu;            // for a CPU, of pods; as of the last window
  // Of pods; only in the sweep that ended a window: with a new reading of cpu.pressure.
  std::optional<ByCgroup<CpuUse>> cpu_use;
  // The longest waits of pods on each other, in total, longest first; a limited number.
  std::span<const WaitPair> cpu_pairs;
  std::span<const WaitPair> memory_pairs;
  // Null: not observed.
  const hr_stalls* node_stalls = nullptr;
  const hr_waits* node_throttles = nullptr;
};

}  // namespace headroom
