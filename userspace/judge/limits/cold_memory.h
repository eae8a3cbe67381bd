// SPDX-License-Identifier: Apache-2.0
// plan_cold(): how much cold memory of a pod over its request is pushed out before the node is
// short (headroom.coldMemory). The step grows while what was pushed out stays out, and shrinks,
// with longer pauses, while it comes back. Pure.
#pragma once

#include <headroom/units.h>

#include <cstdint>
#include <optional>

namespace headroom::judge_limits {

struct ColdPolicy {
  std::optional<float> below{};  // what the kernel can allocate (kernel.memAvailable), as a share
                                 // of memory; absent: off
  Bytes step{std::int64_t{16} << 20};
  float refault_limit = 0.1F;  // of what was pushed out may come back in the same time
  std::optional<int> swappiness{};

  friend bool operator==(const ColdPolicy&, const ColdPolicy&) = default;
};

// Bytes. `refaulted` and `pushed` are in total, since the pod began.
struct ColdReading {
  Instant at{};
  std::int64_t usage = 0;
  std::int64_t request = 0;
  std::uint64_t refaulted = 0;
  std::uint64_t pushed = 0;
  bool wanted = true;  // the node has little memory left
  // That it may still swap before memory.swap.high slows it down; absent: no such limit.
  std::optional<std::int64_t> swap_room{};
};

struct ColdHistory {
  std::int64_t step = 0;  // bytes; 0: nothing was pushed out yet
  Duration pause{0};
  Instant next{};
  std::uint64_t refaulted = 0, pushed = 0;  // at the previous step
  std::uint64_t cost = 0;  // bytes that came back, in total; at most what was pushed out
};

// The bytes to push out now, 0: none. Updates `history`.
std::int64_t plan_cold(const ColdPolicy& policy, const ColdReading& reading, ColdHistory& history);

}  // namespace headroom::judge_limits
