// SPDX-License-Identifier: Apache-2.0
// KernelFacts: what the sweep must know of the running kernel before it is loaded, from its BTF.
#pragma once

#include "observe/bpf/bpf_loader.h"

#include <headroom/bpf/abi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace headroom::observe {

// StatIndices: where the kernel keeps the items of memory.stat, read off its own tables.
//
// A wrong index is worse than none, so a table is believed only if it is, as a whole, what such a
// table must be: each position of the array it leads to is taken by exactly one item.

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

struct KernelFacts {
  std::uint32_t kfuncs = 0;  // hr_kfunc bits
  // By hr_stat: a position in state[], or in events[] with HR_IN_EVENTS; with HR_KFUNC_ITEMS the
  // kernel's enumerator instead.
  std::array<std::uint32_t, HR_STATS> index = no_indices();
  StatIndices state = StatIndices::kUnknown;   // how those of state[] are known
  StatIndices events = StatIndices::kUnknown;  // and those of events[]
  bool has_rstat_hook = false;  // bpf_rstat_flush(), which programs attach to; since 6.1

  static constexpr std::array<std::uint32_t, HR_STATS> no_indices() {
    std::array<std::uint32_t, HR_STATS> none{};
    none.fill(HR_NO_INDEX);
    return none;
  }
};

// On a kernel without BTF every fact is unknown. `use_tables` false: as if the tables were hidden.
// `log` gets the lines that libbpf would print; without it they are dropped.
KernelFacts kernel_facts(bool use_tables = true, LogLine log = {});

}  // namespace headroom::observe
