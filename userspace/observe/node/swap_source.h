// SPDX-License-Identifier: Apache-2.0
// SwapSource: free swap, and what compressed swap holds, from /proc/meminfo, /proc/swaps, zram's
// mm_stat, zswap's parameters, /proc/vmstat and the node's PSI. The files stay open. Without swap
// none is read, unless the node's thrashing is watched.
#pragma once

#include "base/file_io.h"

#include <headroom/snapshot.h>
#include <headroom/swap_room.h>
#include <headroom/units.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace headroom::observe {

class SwapSource {
 public:
  SwapSource(std::filesystem::path proc, std::filesystem::path sys);

  // `meminfo`: the text of /proc/meminfo at `at`; empty: it cannot be read, and nothing is known.
  // Taken again only after a while: 50 ms, down to 5 ms if the memory that is left could be gone
  // before; or at once. `free`: swap.available.
  void read(Instant at, std::string_view meminfo, bool at_once, std::optional<Observation>& free);
  const std::optional<SwapReading>& latest() const { return reading_; }
  // Readings also without swap (headroom.thrashAware).
  void watch_without_swap(bool wanted) { without_swap_ = wanted; }

 private:
  // A zram device that is swap. Devices come and go.
  struct Zram {
    std::uint64_t number = 0;
    Fd mm_stat;
    bool seen = false;
  };
  struct Totals {
    std::int64_t total = 0;
    std::int64_t free = 0;
    bool memory_known = false;
  };
  // Absent: no swap and not watched without, or unknown.
  std::optional<Totals> take_meminfo(std::string_view text, SwapReading& reading);
  void read_devices(SwapReading& reading);
  // What the device may still take of memory. One that cannot be read adds nothing to the pool.
  std::int64_t read_zram(std::uint64_t number, std::int64_t free, SwapReading& reading);
  Zram* zram_slot(std::uint64_t number);
  void read_zswap(Instant at, std::int64_t total, SwapReading& reading);
  void read_counters(SwapReading& reading);

  std::filesystem::path proc_, sys_;
  Fd swaps_, vmstat_, pressure_;  // opened when there is swap
  std::array<Zram, 16> zrams_;
  bool without_swap_ = false;
  std::int64_t memory_total_ = 0;
  std::int64_t zswap_limit_ = 0;  // bytes; 0: disabled
  std::optional<Instant> zswap_read_;
  std::optional<SwapReading> reading_;
  std::optional<Instant> read_at_;
  Duration hold_{0};
};

}  // namespace headroom::observe
