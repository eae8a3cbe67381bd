// SPDX-License-Identifier: Apache-2.0
// Waits: what tasks waited for since observation began, by cgroup and in total.
#pragma once

#include <headroom/stall_abi.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace headroom {

inline constexpr std::array<std::string_view, HR_STALL_CAUSES> kStallCauseNames{
    "global", "limit", "high", "refault", "compaction"};

// The causes that are the node's own: a pod that waits at its own limit does not show a shortage of
// the node, and compaction does not either.
inline constexpr std::array<hr_stall_cause, 2> kNodeWideCauses{HR_STALL_GLOBAL, HR_STALL_REFAULT};

// The value of ids[i] is values[i]. A cgroup that never waited is not listed.
template <class Value>
struct ByCgroup {
  std::span<const std::uint64_t> ids;
  std::span<const Value> values;

  const Value* find(std::uint64_t id) const {
    for (std::size_t i = 0; i < ids.size(); ++i)
      if (ids[i] == id) return &values[i];
    return nullptr;
  }
};

struct Waits {
  // Absent: not observed, or only the node was read.
  std::optional<ByCgroup<hr_stalls>> stalls;    // for memory
  std::optional<ByCgroup<hr_waits>> throttles;  // for CPU quota
  // Null: not observed.
  const hr_stalls* node_stalls = nullptr;
  const hr_waits* node_throttles = nullptr;
};

}  // namespace headroom
