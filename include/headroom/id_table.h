// SPDX-License-Identifier: Apache-2.0
// IdTable: maps a cgroup id to its row; filled once, then read only. One allocation.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace headroom {

class IdTable {
 public:
  // For at most `capacity` ids.
  explicit IdTable(std::size_t capacity)
      : bits_(static_cast<unsigned>(std::bit_width(2 * capacity + 1))),
        slots_(std::size_t{1} << bits_) {}

  // If the id is there already, its row stays.
  void put(std::uint64_t id, std::size_t row) {
    Slot& slot = slots_[slot_of(id)];
    if (slot.row == kNone) slot = {.id = id, .row = static_cast<std::uint32_t>(row)};
  }

  std::optional<std::size_t> find(std::uint64_t id) const {
    const Slot& slot = slots_[slot_of(id)];
    return slot.row == kNone ? std::nullopt : std::optional<std::size_t>(slot.row);
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Slot {
    std::uint64_t id = 0;
    std::uint32_t row = kNone;
  };

  // The slot of the id, or the free slot for it: at least half of the slots are free.
  std::size_t slot_of(std::uint64_t id) const {
    constexpr std::uint64_t kSpread = 0x9e37'79b9'7f4a'7c15;  // 2^64 over the golden ratio
    std::size_t at = static_cast<std::size_t>((id * kSpread) >> (64 - bits_));
    while (slots_[at].row != kNone && slots_[at].id != id)
      at = (at + 1) & (slots_.size() - 1);
    return at;
  }

  unsigned bits_;
  std::vector<Slot> slots_;
};

}  // namespace headroom
