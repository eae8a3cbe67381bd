// SPDX-License-Identifier: Apache-2.0
// StatIndices: where the kernel keeps the items of memory.stat, read off its own tables.
//
// A wrong index is worse than none, so a table is believed only if it is, as a whole, what such a
// table must be: each position of the array it leads to is taken by exactly one item.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace headroom::observe {

enum class StatIndices : std::uint8_t {
  kUnknown,  // nothing but the LRU lists is known
  kBtf,      // state[] is indexed by the enum itself (up to 6.10)
  kTable,    // mem_cgroup_stats_index[], since 6.11
  kKfunc,    // since 7.0, where the table is hidden: bpf_mem_cgroup_page_state()
};
std::string_view name(StatIndices indices);

// Positions by item, HR_NO_INDEX for one that is not kept. `items` entries lead to an array of
// `length`. Entries were seen as ints counted from 1 (events, up to 6.11), bytes counted from 1
// (0: not kept; 6.11) and bytes counted from 0 (255: not kept; since). Nullopt: no table of these.
std::optional<std::vector<std::uint32_t>> decode_index_table(std::span<const unsigned char> table,
                                                             std::size_t items, std::size_t length);

}  // namespace headroom::observe
