// SPDX-License-Identifier: Apache-2.0
// IdTable: where the row of a cgroup's id is; filled once, then only asked. One allocation.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace headroom {

class IdTable {
 public:
  // For no more than so many ids.
  explicit IdTable(std::size_t capacity)
      : bits_(static_cast<unsigned>(std::bit_width(2 * capacity + 1))),
        slots_(std::size_t{1} << bits_) {}

  // The first of an id stays.
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

  // Where it is, or would be: half of the slots at least are free.
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
