// SPDX-License-Identifier: Apache-2.0
// The subsets of a machine's NUMA nodes in the order in which hints list them (kubelet:
// cm/topologymanager/bitmask).
#pragma once

#include <cstddef>
#include <numeric>
#include <vector>

namespace headroom {

// Calls `use` with the subsets of `size` indices below `of`, in lexicographic order, until it says
// no.
template <class Use>
bool for_each_subset(std::size_t of, std::size_t size, Use use) {
  std::vector<std::size_t> picked(size);
  std::iota(picked.begin(), picked.end(), std::size_t{0});
  while (true) {
    if (!use(picked)) return false;
    std::size_t i = size;
    while (i > 0 && picked[i - 1] == of - size + i - 1)
      --i;
    if (i == 0) return true;
    ++picked[i - 1];
    for (; i < size; ++i)
      picked[i] = picked[i - 1] + 1;
  }
}

}  // namespace headroom
