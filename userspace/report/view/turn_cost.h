// SPDX-License-Identifier: Apache-2.0
// TurnCost: the time and allocations of one turn of the loop, measured by the engine.
#pragma once

#include <headroom/ports.h>
#include <headroom/units.h>

#include <array>
#include <cstdint>
#include <string_view>

namespace headroom::report {

// What woke the loop.
enum class WakeSource : std::uint8_t { kTimer, kPressure, kLifecycle, kRequest, kGuard };
inline constexpr std::size_t kWakeSources = 5;
inline constexpr std::array<std::string_view, kWakeSources> kWakeSourceNames{
    "timer", "pressure", "lifecycle", "request", "guard"};

inline constexpr std::size_t kSnapshotScopes = 2;
inline constexpr std::array<std::string_view, kSnapshotScopes> kSnapshotScopeNames{"node",
                                                                                   "cgroups"};

struct TurnCost {
  WakeSource wake = WakeSource::kTimer;
  SnapshotScope scope = SnapshotScope::kNode;  // the largest scope of this turn
  Duration snapshot{0};
  Duration judge{0};
  Duration act{0};
  Duration sweep_period{0};                 // from the latest sweep to the next
  std::uint64_t allocations = 0;            // by the loop thread, from the snapshot to the last act
  std::uint64_t kill_path_allocations = 0;  // of those: from the verdict to the last act
};

}  // namespace headroom::report
