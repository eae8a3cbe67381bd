// SPDX-License-Identifier: Apache-2.0
// Snapshot: everything the judge may know about one instant. A reading that is missing is nullopt
// (or a clear valid bit), never zero.
#pragma once

#include <headroom/abi.h>
#include <headroom/disk_usage.h>
#include <headroom/pod.h>
#include <headroom/signal.h>
#include <headroom/units.h>
#include <headroom/waits.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace headroom {

// What a signal reads: in bytes, inodes or tasks, by the signal's kind.
struct Observation {
  std::int64_t available = 0;
  std::int64_t capacity = 0;
  Instant at;  // when it was sampled
};
using Observations = std::array<std::optional<Observation>, kSignals>;

constexpr std::optional<Observation>& of(Observations& all, Signal signal) {
  return all[static_cast<std::size_t>(signal)];
}
constexpr const std::optional<Observation>& of(const Observations& all, Signal signal) {
  return all[static_cast<std::size_t>(signal)];
}

// Where containers' data lives: decides which parts of a pod count against which filesystem.
struct ImageStorage {
  bool dedicated = false;  // imagefs is not the kubelet's own filesystem
  bool split = false;      // and the writable layers live apart from the images
  bool apart = false;      // and not on the kubelet's own either: three filesystems
  friend bool operator==(ImageStorage, ImageStorage) = default;
};

// A pod beside its cgroup's record of this instant.
struct PodReading {
  std::shared_ptr<const Pod> pod;     // never null
  CgroupId cgroup;                    // the pod-level cgroup
  const hr_record* record = nullptr;  // null: no stats
  // What ranking compares against, worked out once when the pod became known
  // (judge/resources.h).
  Bytes memory_request;
  bool critical = false;                 // static, mirror, or priority >= 2000000000: never evicted
  Bytes storage_request{};               // of ephemeral-storage
  std::optional<Bytes> storage_limit{};  // the pod's, of ephemeral-storage; absent: none
  const DiskUsage* disk = nullptr;       // null: not measured yet
};

struct Snapshot {
  Instant at;
  Observations observations;
  // Absent when only the node was looked at (an O(1) check): the judge may ask for a closer look.
  std::optional<std::span<const hr_record>> cgroups;
  bool cgroups_changed = false;      // some were born or are gone since the last pass
  std::span<const PodReading> pods;  // meaningful only with cgroups
  ImageStorage images;
  Waits waits;  // what tasks waited for, and whose fault it was
};

// The kubelet's working set: usage minus inactive file pages, floored at zero.
inline std::optional<Bytes> working_set(const hr_record& record) {
  if (!(record.valid & HR_MEMORY_USAGE) || !(record.valid & HR_MEMORY_STAT)) return std::nullopt;
  if (record.memory_usage < record.inactive_file) return Bytes{0};
  return Bytes{static_cast<std::int64_t>(record.memory_usage - record.inactive_file)};
}

}  // namespace headroom
