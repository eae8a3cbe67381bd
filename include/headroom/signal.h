// SPDX-License-Identifier: Apache-2.0
// Signals: the kubelet's eviction signals by the kubelet's names, then headroom's own.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace headroom {

enum class Signal : std::uint8_t {
  kMemoryAvailable,
  kAllocatableMemoryAvailable,
  kNodeFsAvailable,
  kNodeFsInodesFree,
  kImageFsAvailable,
  kImageFsInodesFree,
  kContainerFsAvailable,
  kContainerFsInodesFree,
  kPidAvailable,
  kSwapAvailable,   // headroom's: free swap; unknown without swap
  kMemoryPressure,  // headroom's: the share of the window that was not lost to the node's own
                    // shortage
  // headroom's: what can be allocated before the kernel's OOM killer acts: MemAvailable of
  // /proc/meminfo, but above the min watermarks (/proc/sys/vm/min_free_kbytes) instead of the high
  // ones, and with swap what free swap gains (headroom/swap_room.h). memory.available counts anon
  // and file alone; this counts what the kernel itself holds too: pipes, sockets, slab, page
  // tables, per-CPU data.
  kKernelMemAvailable,
  // headroom's: the share of the window in which no pod waited because the node had no CPU left
  // (headroom/waits.h). A pod is evicted for it only if that is asked for (cpu_eviction_period).
  kCpuPressure,
};
inline constexpr std::size_t kSignals = 13;

inline constexpr std::array<std::string_view, kSignals> kSignalNames{
    "memory.available",      "allocatableMemory.available",
    "nodefs.available",      "nodefs.inodesFree",
    "imagefs.available",     "imagefs.inodesFree",
    "containerfs.available", "containerfs.inodesFree",
    "pid.available",         "swap.available",
    "memory.pressure",       "kernel.memAvailable",
    "cpu.pressure",
};

constexpr std::string_view name(Signal signal) {
  return kSignalNames[static_cast<std::size_t>(signal)];
}

// Exact and case-sensitive, as in the kubelet's parser.
constexpr std::optional<Signal> signal_named(std::string_view text) {
  for (std::size_t i = 0; i < kSignals; ++i)
    if (kSignalNames[i] == text) return static_cast<Signal>(i);
  return std::nullopt;
}

// Node conditions that the signals set.
enum class Condition : std::uint8_t { kMemoryPressure, kDiskPressure, kPidPressure, kCpuPressure };
inline constexpr std::size_t kConditions = 4;
inline constexpr std::array<std::string_view, kConditions> kConditionNames{
    "MemoryPressure", "DiskPressure", "PIDPressure", "CPUPressure"};
constexpr std::string_view name(Condition condition) {
  return kConditionNames[static_cast<std::size_t>(condition)];
}

// Whether the signal is an amount of memory that is left.
constexpr bool is_memory(Signal signal) {
  return signal == Signal::kMemoryAvailable || signal == Signal::kAllocatableMemoryAvailable ||
         signal == Signal::kKernelMemAvailable;
}

// The memory of the node as a whole.
constexpr bool is_node_memory(Signal signal) {
  return signal == Signal::kMemoryAvailable || signal == Signal::kKernelMemAvailable;
}

// Whether releasing memory relieves the signal.
constexpr bool wants_memory(Signal signal) {
  return is_memory(signal) || signal == Signal::kMemoryPressure;
}

// Whether the signal is a share of the time, in millionths.
constexpr bool is_share_of_time(Signal signal) {
  return signal == Signal::kMemoryPressure || signal == Signal::kCpuPressure;
}

constexpr Condition condition_of(Signal signal) {
  if (signal == Signal::kCpuPressure) return Condition::kCpuPressure;
  if (wants_memory(signal) || signal == Signal::kSwapAvailable) return Condition::kMemoryPressure;
  return signal == Signal::kPidAvailable ? Condition::kPidPressure : Condition::kDiskPressure;
}

// The resource as the kubelet's messages and events name it.
constexpr std::string_view resource_of(Signal signal) {
  switch (signal) {
    case Signal::kMemoryAvailable:
    case Signal::kAllocatableMemoryAvailable:
    case Signal::kMemoryPressure:
    case Signal::kKernelMemAvailable:
      return "memory";
    case Signal::kNodeFsAvailable:
    case Signal::kImageFsAvailable:
    case Signal::kContainerFsAvailable:
      return "ephemeral-storage";
    case Signal::kNodeFsInodesFree:
    case Signal::kImageFsInodesFree:
    case Signal::kContainerFsInodesFree:
      return "inodes";
    case Signal::kPidAvailable:
      return "pids";
    case Signal::kSwapAvailable:
      return "swap";
    case Signal::kCpuPressure:
      return "cpu";
  }
  return "";
}

}  // namespace headroom
