// SPDX-License-Identifier: Apache-2.0
#include "ctl/run/node_memory.h"

#include "observe/node/capacity.h"
#include "observe/node/node_source.h"

namespace headroom::ctl {

Result<NodeMemory> node_memory(Bytes allocatable) {
  observe::NodeSource source({});
  const auto capacity = source.memory_capacity();
  if (!capacity) return failure("read MemTotal of /proc/meminfo: it is missing");
  NodeMemory node{.capacity = *capacity,
                  .swap = {},
                  .allocatable = allocatable > Bytes{0} ? allocatable : *capacity,
                  .huge_page_sizes = {}};
  Observations seen{};
  source.read_swap(seen);
  if (const auto& swap = of(seen, Signal::kSwapAvailable)) node.swap = Bytes{swap->capacity};
  for (const auto& [size, pool] : observe::huge_page_pools())
    node.huge_page_sizes.push_back(size);
  return node;
}

}  // namespace headroom::ctl
