// SPDX-License-Identifier: Apache-2.0
// Snapshot: everything the judge may know about one instant. A reading that is missing is nullopt
// (or a clear valid bit), never zero.
#pragma once

#include <headroom/abi.h>
#include <headroom/disk_usage.h>
#include <headroom/eviction_unit.h>
#include <headroom/pod.h>
#include <headroom/signal.h>
#include <headroom/swap_room.h>
#include <headroom/units.h>
#include <headroom/waits.h>

#include <algorithm>
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

// How much is known of a pod, in the order of eviction: a later one is evicted only when no pod of
// an earlier one is left. Beside a kubelet a pod's cgroup is there a moment before its description;
// until then its priority and its requests are unknown, not zero.
enum class PodDescription : std::uint8_t {
  kComplete,  // a manifest; or its cgroup alone where no kubelet is asked, and none will follow
  kAwaited,   // its cgroup alone, and a kubelet is asked
  // The same, of a Guaranteed or node-critical pod by what is seen here: the QoS class in the
  // cgroup's path, or the oom_score_adj that the kubelet gave to a process (-997).
  kAwaitedProtected,
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
  bool storage_is_unlimited = false;     // nothing of it has a limit of local storage, of any kind
  const DiskUsage* disk = nullptr;       // null: not measured yet
  std::uint32_t measured = 0;            // how often it was
  std::optional<EvictionUnit> unit{};    // the pod's own wish; absent: the policy's
  const PodParts* parts = nullptr;       // null: its containers and processes are not read
  PodDescription description = PodDescription::kComplete;
};

// What changed since the previous sweep, for code that keeps results of it.
struct SweepChanges {
  // Beside each record: the pass that wrote it; empty: this one wrote them all.
  std::span<const hr_change_stamp> change_stamps;
  std::uint32_t pass = 0;   // this one
  std::uint32_t order = 0;  // another number where a cgroup came, went or changed its place
};

struct Snapshot {
  Instant at;
  Observations observations;
  std::optional<SwapReading> swap;  // absent: no swap, or unknown
  // Absent when only the node was looked at (an O(1) check): the judge may ask for a closer look.
  std::optional<std::span<const hr_record>> cgroups;
  SweepChanges changes;              // of cgroups
  bool cgroups_changed = false;      // some were born or are gone since the last pass
  std::span<const PodReading> pods;  // meaningful only with cgroups
  ImageStorage images;
  Waits waits;  // what tasks waited for, and what caused it
};

// The kubelet's working set: usage minus inactive file pages, floored at zero.
inline std::optional<Bytes> working_set(const hr_record& record) {
  if (!(record.valid & HR_MEMORY_USAGE) || !(record.valid & HR_MEMORY_STAT)) return std::nullopt;
  if (record.memory_usage < record.inactive_file) return Bytes{0};
  return Bytes{static_cast<std::int64_t>(record.memory_usage - record.inactive_file)};
}

// What its processes alone hold, and so what comes back when they end: anonymous and shared memory,
// page tables, stacks. Page cache outlives its reader.
inline std::optional<Bytes> held_by_processes(const hr_record& record) {
  constexpr std::uint32_t kNeeded = HR_MEMORY_USAGE | HR_MEMORY_STAT;
  if ((record.valid & kNeeded) != kNeeded || record.anon == HR_UNKNOWN) return std::nullopt;
  const auto known = [](hr_u64 value) {
    return value == HR_UNKNOWN ? 0 : static_cast<std::int64_t>(value);
  };
  const std::int64_t held = known(record.anon) + known(record.shmem) + known(record.kernel_stack) +
                            known(record.pagetables);
  return Bytes{std::min(held, static_cast<std::int64_t>(record.memory_usage))};
}

}  // namespace headroom
