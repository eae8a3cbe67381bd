// SPDX-License-Identifier: Apache-2.0
// SwapRoom: memory.available on a node with swap (headroom.swapAware).
//
// The kubelet's memory.available is the capacity less the working set. The kernel swaps before that
// is low, and what zram and zswap hold is charged to no cgroup, so on a node with swap the value
// stays high until swap is full. The rule, in bytes:
//
//   memory.available = the smaller of
//     the kubelet's value, and
//     MemAvailable + what free swap would gain - what the next second will fill
//
//   - A free byte of swap on a disk gains one byte.
//   - A free byte of zram gains 1 - r bytes, where r is the memory that zram takes for each byte it
//     holds: of all it holds, or of the last 16 MiB it took, whichever is more. Below 16 MiB there
//     is little to judge by, and r is close to 1/2. A mem_limit bounds how much zram can take.
//   - What zswap may still grow by is subtracted from the gain of the disks: these pages go to
//     memory first, and take r bytes each.
//   - The next second fills as much as the recent fill rate of swap (mean over about one second),
//     at most all of the gain.
//   - While the node thrashes, free swap gains nothing, and page cache in use (Active(file)) is
//     subtracted from MemAvailable. It thrashes if over the last three seconds or so all tasks
//     together waited for memory for a quarter of the time (PSI, full), and refaults were at least
//     half of the pages that the node's reclaim freed; or if they waited for 60 % of the time,
//     regardless of refaults: then the device is too slow; or if over the last two seconds or so a
//     pod that holds no more memory and swap than it requests waited for memory for a tenth of
//     the time, for the node's own causes, while a pod above its request grew.
//
// Pages that stay in swap do not lower the value, however many they are. Without swap the value is
// exactly the kubelet's; with swap it is never above it. Pods that may not swap (memory.swap.max 0)
// count only through MemAvailable and the kubelet's value.
//
// Without swap a node can thrash as well: the kernel takes page cache and program text that is read
// back at once. There the rule is optional (headroom.thrashAware): while the node thrashes, the
// value is the smaller of the kubelet's and MemAvailable without any page cache, otherwise the
// kubelet's.
//
// What a pod waits for at its own limit is no sign of thrashing, and neither is what a cgroup waits
// for that grows: it waits for the memory it takes itself. Where waits are observed by cause, the
// stalled time counts by the share that the others have in all waits.
#pragma once

#include <headroom/units.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace headroom {

// Readings of a node with swap, or of one without where headroom.thrashAware asks for them. In
// bytes, unless stated otherwise.
struct SwapReading {
  // One kind of swap space, summed over its devices.
  struct Space {
    std::int64_t total = 0;
    std::int64_t free = 0;
  };
  // The content of a compressed store, and the memory that it takes.
  struct Compressed {
    std::int64_t stored = 0;
    std::int64_t memory = 0;
    std::int64_t memory_left = 0;  // memory that it may still take; without a limit: the free space
  };
  Instant at{};
  std::int64_t mem_available = 0;
  // Page cache that is read back while the node thrashes: Active(file); without swap all of it,
  // because the kernel can take nothing else.
  std::int64_t cache_in_use = 0;
  std::int64_t resident = 0;  // anonymous and shared memory that is not swapped
  Space disk{};               // all swap that is not zram
  Space zram{};
  Compressed zram_pool{};
  std::int64_t incompressible = 0;  // of zram_pool.stored
  std::int64_t cold = 0;            // of `resident`: Inactive(anon); shown, not judged
  Compressed zswap{};               // memory_left: 0 where it is disabled
  // Since boot, as of counted_at; absent: unknown.
  Instant counted_at{};
  std::optional<std::uint64_t> refaults{};   // pages, anonymous and of files
  std::optional<std::uint64_t> reclaimed{};  // pages, by the node's reclaim, no cgroup's
  // PSI memory, full; of the node's own causes, and not of cgroups that grow
  std::optional<std::uint64_t> stalled_micros{};
  // For how long the pod within its memory request that waited most waited for memory, for the
  // node's own causes, while a pod above its request grew; summed over sweeps. As of
  // pods_counted_at; absent: unknown.
  Instant pods_counted_at{};
  std::optional<std::uint64_t> pods_stalled_micros{};

  bool has_swap() const { return disk.total > 0 || zram.total > 0; }
};

// State kept from earlier readings.
struct SwapHistory {
  // How well a compressed store compressed the pages it stored most recently.
  struct Recent {
    std::int64_t stored = 0, memory = 0;  // values at the beginning of the most recent part
    std::optional<double> ratio{};
  };
  std::optional<SwapReading> last{};
  double fill_rate = 0;  // bytes per second
  Recent zram{}, zswap{};
  // Means of the last seconds: pages per second, and a share of the time.
  double refault_rate = 0;
  double reclaim_rate = 0;
  double stalled = 0;
  double pods_stalled = 0;
};

// The result, with its parts in bytes.
struct SwapRoom {
  enum class Bound : std::uint8_t {
    kKubelet,    // the kubelet's value is the smaller
    kRoom,       // memory and what swap gains
    kThrashing,  // memory without the page cache in use
  };
  static constexpr std::array<std::string_view, 3> kBoundNames{"kubelet", "room", "thrashing"};
  std::string_view bound_name() const { return kBoundNames[static_cast<std::size_t>(bound)]; }

  std::int64_t available = 0;  // what thresholds of memory.available are compared with
  std::int64_t kubelet = 0;    // the kubelet's value
  std::int64_t memory = 0;     // MemAvailable; while thrashing: without the page cache in use
  std::int64_t gain = 0;       // of free swap; while thrashing: 0
  std::int64_t filling = 0;    // the part of it that the next second will fill
  Bound bound = Bound::kKubelet;
  bool in_force = false;  // headroom.swapAware; without swap, headroom.thrashAware
  bool swap = true;       // false: the node has no swap
  double fill_rate = 0;   // bytes per second
  double stalled = 0;     // share of the time
  // The same, of the pod within its memory request that waited most.
  double pods_stalled = 0;
  // Pages per second: read back, and freed by the node's reclaim.
  double refault_rate = 0, reclaim_rate = 0;
  // Where the memory of processes is.
  std::int64_t resident = 0;
  std::int64_t cold = 0;             // of `resident`: what the kernel would swap out first
  std::int64_t compressed = 0;       // zram and zswap: size of the pages before compression
  std::int64_t compressed_size = 0;  // the memory they take
  std::int64_t incompressible = 0;   // of `compressed`: pages that zram could not compress
  std::int64_t on_disk = 0;
};

}  // namespace headroom
