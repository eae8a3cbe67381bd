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
//   - The next second fills as much as swap filled per second lately (mean of about one second),
//     at most all of the gain.
//   - While the node thrashes, free swap gains nothing, and page cache in use (Active(file)) is
//     subtracted from MemAvailable. It thrashes if over the last three seconds or so all tasks
//     together stood still for memory for a quarter of the time (PSI, full), and at least half as
//     many pages came back (refaults) as the node's reclaim took; or if they stood still for 60 %
//     of the time, whatever came back: then the device does not keep up.
//
// Swapped pages that stay where they are cost nothing by this rule, however many they are. Without
// swap the value is exactly the kubelet's, and never above it with swap. Pods that may not swap
// (memory.swap.max 0) are seen by MemAvailable and the kubelet's value alone.
#pragma once

#include <headroom/units.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace headroom {

// What is read of a node with swap. Bytes, unless said otherwise.
struct SwapReading {
  // Of one kind of swap space, all devices together.
  struct Space {
    std::int64_t total = 0;
    std::int64_t free = 0;
  };
  // What a compressed store holds, and the memory that this takes.
  struct Compressed {
    std::int64_t stored = 0;
    std::int64_t memory = 0;
    std::int64_t memory_left = 0;  // what it may still take; no limit: the free space
  };
  Instant at{};
  std::int64_t mem_available = 0;
  std::int64_t active_file = 0;
  std::int64_t resident = 0;  // anonymous and shared memory that is not swapped
  Space disk{};               // all swap that is not zram
  Space zram{};
  Compressed zram_pool{};
  std::int64_t incompressible = 0;  // of zram_pool.stored
  Compressed zswap{};               // memory_left: 0 where it is disabled
  // Since boot, as of counted_at; absent: unknown.
  Instant counted_at{};
  std::optional<std::uint64_t> refaults{};        // pages, anonymous and of files
  std::optional<std::uint64_t> reclaimed{};       // pages, by the node's reclaim, no cgroup's
  std::optional<std::uint64_t> stalled_micros{};  // PSI memory, full
};

// What is remembered of former readings.
struct SwapHistory {
  // How well a compressed store compressed the latest of what it took.
  struct Recent {
    std::int64_t stored = 0, memory = 0;  // where the latest part begins
    std::optional<double> ratio{};
  };
  std::optional<SwapReading> last{};
  double fill_rate = 0;  // bytes per second
  Recent zram{}, zswap{};
  // Of the last seconds: pages per second, and a share of the time.
  double refault_rate = 0;
  double reclaim_rate = 0;
  double stalled = 0;
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
  std::int64_t memory = 0;     // MemAvailable; thrashing: less the page cache in use
  std::int64_t gain = 0;       // of free swap; thrashing: 0
  std::int64_t filling = 0;    // of that, what the next second will fill
  Bound bound = Bound::kKubelet;
  bool in_force = false;  // headroom.swapAware
  double fill_rate = 0;   // bytes per second
  double stalled = 0;     // share of the time
  // Where the memory of processes is.
  std::int64_t resident = 0;
  std::int64_t compressed = 0;       // zram and zswap: what the pages held before
  std::int64_t compressed_size = 0;  // the memory they take
  std::int64_t incompressible = 0;   // of `compressed`: pages that zram could not compress
  std::int64_t on_disk = 0;
};

}  // namespace headroom
