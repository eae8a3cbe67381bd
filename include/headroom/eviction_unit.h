// SPDX-License-Identifier: Apache-2.0
// Part: what of a pod a kill takes: all of it, one of its containers, or one process.
#pragma once

#include <headroom/units.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace headroom {

enum class EvictionUnit : std::uint8_t { kPod, kContainer, kProcess };
inline constexpr std::array<std::string_view, 3> kEvictionUnitNames{"pod", "container", "process"};
constexpr std::string_view name(EvictionUnit unit) {
  return kEvictionUnitNames[static_cast<std::size_t>(unit)];
}
constexpr std::optional<EvictionUnit> eviction_unit_named(std::string_view text) {
  for (std::size_t i = 0; i < kEvictionUnitNames.size(); ++i)
    if (kEvictionUnitNames[i] == text) return static_cast<EvictionUnit>(i);
  return std::nullopt;
}

// A pod's own wish, before the node's.
inline constexpr std::string_view kEvictionUnitAnnotation = "headroom.io/eviction-unit";

// A process by a name that is never reused: a pid comes again, but not with the same start.
struct ProcessIdentity {
  std::int32_t pid = 0;       // 0: none
  std::uint64_t started = 0;  // clock ticks since boot (field 22 of /proc/PID/stat)
  friend bool operator==(ProcessIdentity, ProcessIdentity) = default;
};

struct Part {
  EvictionUnit unit = EvictionUnit::kPod;  // what is taken
  // kContainer: the cgroup that is killed; kProcess: the one it lives in. Below the pod's own.
  CgroupId cgroup{};
  ProcessIdentity process{};
  std::array<char, 16> comm{};  // kProcess: what it calls itself
  // A process was asked for, but memory.oom.group makes it die with others, as the kernel would
  // have it.
  bool group = false;
  friend bool operator==(const Part&, const Part&) = default;

  bool whole() const { return unit == EvictionUnit::kPod; }
  // Whether both are the same part, whatever else is known of it.
  bool is(const Part& other) const {
    return unit == other.unit && cgroup == other.cgroup && process == other.process;
  }
};

// A cgroup within a pod at one instant: a container's, or one further in that dies as one.
struct PartReading {
  CgroupId cgroup;
  bool container = true;
  bool oom_group = false;  // memory.oom.group is 1
  bool populated = true;
  Bytes memory_request{};        // the container's; zero: none, or it is not known which one it is
  std::optional<Bytes> usage{};  // memory.current
  std::optional<Bytes> working_set{};
  std::optional<Bytes> release{};     // what its processes alone hold
  std::optional<Bytes> high{};        // memory.high; absent: no limit, or unknown
  std::optional<Duration> stalled{};  // its tasks' waits at memory.high, in all; absent: unknown
  friend bool operator==(const PartReading&, const PartReading&) = default;
};

// The largest process of a pod. PID 1 of the pod's containers is one like any other.
struct ProcessReading {
  ProcessIdentity name;
  std::array<char, 16> comm{};
  CgroupId cgroup;  // it lives in
  // The highest cgroup it lives in, up to the pod's, with memory.oom.group; zero: none.
  CgroupId group{};
  Bytes held;  // resident memory and swap
  friend bool operator==(const ProcessReading&, const ProcessReading&) = default;
};

// What is known of the inside of a pod that may be taken in part, or may be stuck at a limit.
struct PodParts {
  std::vector<PartReading> parts;
  std::optional<ProcessReading> largest;  // absent: not asked for, or unknown
  bool oom_group = false;                 // of the pod's own cgroup: it dies as one
  std::optional<Duration> stalled;        // of all in it at memory.high; absent: unknown
  friend bool operator==(const PodParts&, const PodParts&) = default;
};

}  // namespace headroom
