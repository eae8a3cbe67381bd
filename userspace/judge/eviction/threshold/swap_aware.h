// SPDX-License-Identifier: Apache-2.0
// memory.available on a node with swap: the rule is in <headroom/swap_room.h>.
#pragma once

#include <headroom/swap_room.h>

#include <cstdint>
#include <optional>

namespace headroom::judge_eviction {

// What is remembered after this reading. The same reading again changes nothing.
SwapHistory advance(const SwapHistory& before, const SwapReading& reading);

// `kubelet`: memory.available as the kubelet computes it. `history`: advanced to this reading.
SwapRoom swap_room(const SwapReading& reading, std::int64_t kubelet, const SwapHistory& history);

// kernel.memAvailable: `mem_available` with what free swap gains. With room.in_force also less the
// page cache in use while the node thrashes.
std::int64_t kernel_mem_available(const SwapReading& reading, std::int64_t mem_available,
                                  const SwapRoom& room, const SwapHistory& history);

// While only what free swap gains keeps memory.available above `limit`, and swap fills: when the
// stalls of pods are to be counted again. Absent: not before the next sweep.
std::optional<Instant> pod_stalls_due(const std::optional<SwapReading>& reading,
                                      const std::optional<SwapRoom>& room, std::int64_t limit);

// A pod was evicted: the stalls before that say nothing about the node as it is now.
void restart_thrashing(SwapHistory& history);

}  // namespace headroom::judge_eviction
