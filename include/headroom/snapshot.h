// SPDX-License-Identifier: Apache-2.0
// Snapshot: all input of the judge for one instant. A missing reading is nullopt (or a clear valid
// bit), never zero.
#pragma once

#include <headroom/bpf/abi.h>
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

// A signal's reading: in bytes, inodes or tasks, by the signal's kind.
struct Observation {
  std::int64_t available = 0;
  std::int64_t capacity = 0;
  Instant at;  // when it was sampled
  // By how much `available` may be too high, and so what is added to the limits of its thresholds:
  // of memory.available where its counters cannot be flushed before they are read.
  std::int64_t error = 0;
};
using Observations = std::array<std::optional<Observation>, kSignals>;

constexpr std::optional<Observation>& of(Observations& all, Signal signal) {
  return all[static_cast<std::size_t>(signal)];
}
constexpr const std::optional<Observation>& of(const Observations& all, Signal signal) {
  return all[static_cast<std::size_t>(signal)];
}

// Where the containers' data is stored: decides which parts of a pod count against which
// filesystem.
struct ImageStorage {
  bool dedicated = false;  // imagefs is not the kubelet's own filesystem
  bool split = false;      // and the writable layers are on another filesystem than the images
  bool apart = false;      // and not on the kubelet's own: three filesystems
  friend bool operator==(ImageStorage, ImageStorage) = default;
};

// How much is known of a pod, in the order of eviction: a later one is evicted only when no pod of
// an earlier one is left. Beside a kubelet, a pod's cgroup exists a moment before its description
// arrives; until then its priority and its requests are unknown, not zero.
enum class PodDescription : std::uint8_t {
  kComplete,  // a manifest; or the cgroup only, where no kubelet is queried and no description will
              // follow
  kAwaited,   // the cgroup only; the kubelet is queried for the description
  // The same for a pod that is Guaranteed or node-critical by local evidence: the QoS class in the
  // cgroup's path, or an oom_score_adj of -997 or less, which the kubelet sets.
  kAwaitedProtected,
};

// A pod with its cgroup's record at this instant.
struct PodReading {
  std::shared_ptr<const Pod> pod;     // never null
  CgroupId cgroup;                    // the pod-level cgroup
  const hr_record* record = nullptr;  // null: no stats
  // The requests that ranking compares usage with; computed once when the pod became known
  // (judge/resources/pod_resources.h).
  Bytes memory_request;
  bool critical = false;                 // static, mirror, or priority >= 2000000000: never evicted
  Bytes storage_request{};               // of ephemeral-storage
  std::optional<Bytes> storage_limit{};  // the pod's, of ephemeral-storage; absent: none
  bool storage_is_unlimited =
      false;  // neither the pod nor a volume or container of it has a limit of local storage
  const DiskUsage* disk = nullptr;     // null: not measured yet
  std::uint32_t measured = 0;          // number of measurements
  std::optional<EvictionUnit> unit{};  // set by the pod itself; absent: the policy's
  const PodParts* parts = nullptr;     // null: its containers and processes are not read
  PodDescription description = PodDescription::kComplete;
};

// What changed since the previous sweep, for code that keeps results between sweeps.
struct SweepChanges {
  // For each record the pass that wrote it; empty: this pass wrote them all.
  std::span<const hr_change_stamp> change_stamps;
  std::uint32_t pass = 0;   // this pass
  std::uint32_t order = 0;  // changes when a cgroup is created or removed, or the order changes
};

struct Snapshot {
  Instant at;
  Observations observations;
  std::optional<SwapReading> swap;  // absent: no swap, or unknown
  // In use, in neither anon nor file of the root's memory.stat: memory.available counts it as
  // available. For reports; nothing is judged by it.
  std::optional<Bytes> unaccounted_memory;
  std::optional<Bytes> page_tables;  // of the node, of this pass; absent: unknown, or no pass
  // Absent if only the node was read (an O(1) check): the judge may then request a sweep.
  std::optional<std::span<const hr_record>> cgroups;
  SweepChanges changes;              // of cgroups
  bool cgroups_changed = false;      // some were created or removed since the last pass
  std::span<const PodReading> pods;  // valid only if `cgroups` is present
  ImageStorage images;
  Waits waits;  // what tasks waited for, and what caused it
};

// The kubelet's working set: usage minus inactive file pages, floored at zero.
inline std::optional<Bytes> working_set(const hr_record& record) {
  if (!(record.valid & HR_MEMORY_USAGE) || !(record.valid & HR_MEMORY_STAT)) return std::nullopt;
  if (record.memory_usage < record.inactive_file) return Bytes{0};
  return Bytes{static_cast<std::int64_t>(record.memory_usage - record.inactive_file)};
}

// Of the swap that the cgroup uses, what is not in memory as well: a page that was read back, or
// that could not be written, keeps its place in swap (the swap cache). Absent: swap is not
// accounted.
inline std::optional<Bytes> swapped_out(const hr_record& record) {
  if (!(record.valid & HR_MEMORY_USAGE) || record.swap_usage == HR_UNKNOWN) return std::nullopt;
  const bool known = (record.valid & HR_MEMORY_STAT) && record.swapcached != HR_UNKNOWN;
  const hr_u64 in_both = known ? std::min(record.swapcached, record.swap_usage) : 0;
  return Bytes{static_cast<std::int64_t>(record.swap_usage - in_both)};
}

// All that the cgroup holds, page cache included, each page once.
inline std::optional<Bytes> memory_and_swap(const hr_record& record) {
  if (!(record.valid & HR_MEMORY_USAGE)) return std::nullopt;
  return Bytes{static_cast<std::int64_t>(record.memory_usage)} +
         swapped_out(record).value_or(Bytes{0});
}

// The memory that the processes hold, and that is free when they end: anonymous and shared memory,
// page tables, stacks. Page cache stays after their end.
inline std::optional<Bytes> held_by_statistics(const hr_record& record) {
  if (!(record.valid & HR_MEMORY_STAT) || record.anon == HR_UNKNOWN) return std::nullopt;
  const auto known = [](hr_u64 value) {
    return value == HR_UNKNOWN ? 0 : static_cast<std::int64_t>(value);
  };
  return Bytes{known(record.anon) + known(record.shmem) + known(record.kernel_stack) +
               known(record.pagetables)};
}

// The same, and no more than its memory.current, which falls at once.
inline std::optional<Bytes> held_by_processes(const hr_record& record) {
  const auto held = held_by_statistics(record);
  if (!held || !(record.valid & HR_MEMORY_USAGE)) return std::nullopt;
  return std::min(*held, Bytes{static_cast<std::int64_t>(record.memory_usage)});
}

// What MemAvailable does not count as available of what the cgroup is charged: all but page cache
// and reclaimable slab. Pipes, sockets and page tables are in it.
inline std::optional<Bytes> unreclaimable_charge(const hr_record& record) {
  const auto held = working_set(record);
  if (!held) return std::nullopt;
  if (record.file == HR_UNKNOWN || record.shmem == HR_UNKNOWN) return held;
  const hr_u64 slab = record.slab_reclaimable == HR_UNKNOWN ? 0 : record.slab_reclaimable;
  const hr_u64 cache = (record.file > record.shmem ? record.file - record.shmem : 0) + slab;
  return Bytes{record.memory_usage > cache ? static_cast<std::int64_t>(record.memory_usage - cache)
                                           : 0};
}

}  // namespace headroom
