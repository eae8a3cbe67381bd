// SPDX-License-Identifier: Apache-2.0
// Part: what a kill ends: a whole pod, one of its containers, or one process.
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

// The annotation by which a pod sets its own unit; it has precedence over the node's.
inline constexpr std::string_view kEvictionUnitAnnotation = "headroom.io/eviction-unit";

// Identifies a process uniquely while the machine runs: a pid is reused, but not with the same
// start time.
struct ProcessIdentity {
  std::int32_t pid = 0;       // 0: none
  std::uint64_t started = 0;  // clock ticks since boot (field 22 of /proc/PID/stat)
  friend bool operator==(ProcessIdentity, ProcessIdentity) = default;
};

struct Part {
  EvictionUnit unit = EvictionUnit::kPod;  // what is killed
  // kContainer: the cgroup that is killed; kProcess: the cgroup of the process. Below the pod's
  // own.
  CgroupId cgroup{};
  ProcessIdentity process{};
  std::array<char, 16> comm{};  // kProcess: the command name, as in /proc/PID/comm
  // The unit was a process, but memory.oom.group makes all processes of its cgroup end together, as
  // with the kernel's OOM killer.
  bool group = false;
  friend bool operator==(const Part&, const Part&) = default;

  bool whole() const { return unit == EvictionUnit::kPod; }
  // Whether both identify the same part; comm and group are not compared.
  bool is(const Part& other) const {
    return unit == other.unit && cgroup == other.cgroup && process == other.process;
  }
};

// A cgroup in a pod at one instant: a container's, or a nested one with memory.oom.group.
struct PartReading {
  CgroupId cgroup;
  bool container = true;
  bool oom_group = false;  // memory.oom.group is 1
  bool populated = true;
  Bytes memory_request{};  // the container's request; zero: none, or the container is not known
  std::optional<Bytes> usage{};  // memory.current
  std::optional<Bytes> working_set{};
  std::optional<Bytes> release{};     // memory that its processes hold; page cache is not included
  std::optional<Bytes> high{};        // memory.high; absent: no limit, or one of the two is unknown
  std::optional<Bytes> max{};         // memory.max; absent: no limit
  std::optional<Duration> stalled{};  // total time its tasks waited at memory.high; absent: unknown
  friend bool operator==(const PartReading&, const PartReading&) = default;
};

// The largest process of a pod. PID 1 of a container is not excluded.
struct ProcessReading {
  ProcessIdentity name;
  std::array<char, 16> comm{};
  CgroupId cgroup;  // of the process
  // The highest cgroup above the process, up to the pod's, with memory.oom.group; zero: none.
  CgroupId group{};
  Bytes held;  // resident memory and swap
  friend bool operator==(const ProcessReading&, const ProcessReading&) = default;
};

// The containers and the largest process of a pod. Read for pods of which a part may be killed, or
// which may be stuck at a limit.
struct PodParts {
  std::vector<PartReading> parts;
  std::optional<ProcessReading> largest;  // absent: not needed, or unknown
  bool oom_group =
      false;  // memory.oom.group of the pod's own cgroup: all its processes end together
  std::optional<Duration>
      stalled;  // total time all its tasks waited at memory.high; absent: unknown
  friend bool operator==(const PodParts&, const PodParts&) = default;
};

}  // namespace headroom
