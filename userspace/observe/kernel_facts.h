// SPDX-License-Identifier: Apache-2.0
// KernelFacts: what the sweep must know of the running kernel before it is loaded, from its BTF.
#pragma once

#include <headroom/abi.h>

#include <cstdint>
#include <string_view>

namespace headroom::observe {

// Where anon, file and shmem of memory.stat come from.
enum class StatIndices : std::uint8_t {
  kUnknown,  // the fields stay HR_UNKNOWN
  kBtf,      // up to 6.10: state[] is indexed by the enum itself
  kTable,    // since 6.11: mem_cgroup_stats_index[], checked against what is known of its order
  kKfunc,    // since 7.0, where the table is hidden: bpf_mem_cgroup_page_state()
};
std::string_view name(StatIndices indices);

struct KernelFacts {
  std::uint32_t kfuncs = 0;  // hr_kfunc bits
  std::uint32_t anon_index = HR_NO_INDEX;
  std::uint32_t file_index = HR_NO_INDEX;
  std::uint32_t shmem_index = HR_NO_INDEX;
  StatIndices indices = StatIndices::kUnknown;
};

// A kernel without BTF gives facts that know nothing. `use_table` false: as if the table was
// hidden.
KernelFacts kernel_facts(bool use_table = true);

// The three indices from the table's entries for: the five LRU lists in order, anon, file, shmem.
// False if this is not the table we take it for: a wrong index is worse than none.
bool indices_from_table(const hr_stat_index& table, KernelFacts& facts);

}  // namespace headroom::observe
