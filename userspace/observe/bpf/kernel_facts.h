// SPDX-License-Identifier: Apache-2.0
// KernelFacts: what the sweep must know of the running kernel before it is loaded, from its BTF.
#pragma once

#include "observe/bpf/libbpf_log.h"
#include "observe/bpf/stat_indices.h"

#include <headroom/abi.h>

#include <array>
#include <cstdint>

namespace headroom::observe {

struct KernelFacts {
  std::uint32_t kfuncs = 0;  // hr_kfunc bits
  // By hr_stat: a position in state[], or in events[] with HR_IN_EVENTS; with HR_KFUNC_ITEMS the
  // kernel's enumerator instead.
  std::array<std::uint32_t, HR_STATS> index = no_indices();
  StatIndices state = StatIndices::kUnknown;   // how those of state[] are known
  StatIndices events = StatIndices::kUnknown;  // and those of events[]

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
