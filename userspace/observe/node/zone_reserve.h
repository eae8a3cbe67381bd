// SPDX-License-Identifier: Apache-2.0
// What of the free memory no process can have.
#pragma once

#include <cstdint>
#include <istream>
#include <optional>

namespace headroom::observe {

// In pages, from /proc/zoneinfo: of each zone its min watermark, below which only the kernel's own
// urgent allocations go, and what it keeps from allocations that a higher zone could serve
// ("protection", lowmem_reserve_ratio); at most the zone. As calculate_totalreserve_pages()
// (mm/page_alloc.c), but with the min watermark in place of the high one. Absent: not understood.
std::optional<std::uint64_t> reserved_pages(std::istream& zoneinfo);

}  // namespace headroom::observe
