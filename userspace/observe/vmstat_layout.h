// SPDX-License-Identifier: Apache-2.0
// VmstatLayout: where this kernel keeps anon, file and shmem in memcg_vmstats.state[].
//
// Up to 6.10 the array is indexed by the enum itself. Since 6.11 it is compacted: the table that
// maps one to the other is a static array, visible in kallsyms only with CONFIG_KALLSYMS_ALL, and
// depends on the configuration, so it is never guessed. A wrong index is worse than none.
#pragma once

#include <cstdint>

struct btf;

namespace headroom::observe {

struct VmstatLayout {
  std::uint32_t anon;  // HR_NO_INDEX where not known from BTF
  std::uint32_t file;
  std::uint32_t shmem;
  bool compacted;
};

// A null btf (no BTF on this kernel) gives a layout that knows nothing.
VmstatLayout vmstat_layout(const btf* kernel);

}  // namespace headroom::observe
