// SPDX-License-Identifier: Apache-2.0
// plan_limit(): what is done for a cgroup of a pod that nears its own memory.max. Memory is
// reclaimed in the background before its tasks must reclaim themselves
// (headroom.podLimits.reclaim), and the limit is raised in steps while the node has room, and
// lowered again (headroom.podLimits.rescue). Pure: the time and all readings are arguments.
#pragma once

#include <headroom/units.h>

#include <cstdint>
#include <optional>

namespace headroom::judge_limits {

struct LimitPolicy {
  bool reclaim = false;
  // The highest limit that is set, as a share of the original one; absent: no limit is raised.
  std::optional<float> ceiling{};
  std::int64_t fastest_fill = std::int64_t{8} << 30;  // bytes per second (Policy::fastest_fill)

  bool any() const { return reclaim || ceiling; }
  friend bool operator==(const LimitPolicy&, const LimitPolicy&) = default;
};

// Bytes, unless stated otherwise.
struct LimitReading {
  Instant at{};
  std::int64_t usage = 0;
  std::int64_t max = 0;
  std::optional<std::int64_t> held{};  // usage without page cache; absent: not read
  std::uint64_t reclaimed = 0;         // in the background, in total
};

struct LimitHistory {
  std::optional<LimitReading> last{};
  double fill_rate = 0;                    // bytes per second that the tasks charge
  std::optional<std::int64_t> original{};  // memory.max before it was raised; absent: not raised
  Instant raised_at{};
};

// The fill rate rises at once and decays within seconds.
LimitHistory advance(const LimitHistory& before, const LimitReading& reading);

// The page cache of such a cgroup matters, so `held` is to be read.
bool is_near_limit(const LimitReading& reading);

// The highest limit for a cgroup whose own is `original`.
std::int64_t ceiling_of(const LimitPolicy& policy, std::int64_t original);

// It should be raised; what the node has left must be known for that.
bool wants_raise(const LimitPolicy& policy, const LimitReading& reading,
                 const LimitHistory& history);

// memory.high just below memory.max slows the tasks down so that a raise is in time.
enum class Brake : std::uint8_t { kKeep, kOn, kOff };
std::int64_t brake_of(std::int64_t max);

struct LimitPlan {
  std::int64_t reclaim = 0;                // bytes to reclaim now
  std::optional<std::int64_t> raise_to{};  // memory.max
  std::optional<std::int64_t> lower_to{};
  Brake brake = Brake::kKeep;
  Duration next{0};  // until the next reading

  friend bool operator==(const LimitPlan&, const LimitPlan&) = default;
};
// `room`: bytes that the node has above its threshold of memory.available, less what earlier raises
// may still take; absent: not read, or unknown.
LimitPlan plan_limit(const LimitPolicy& policy, const LimitReading& reading,
                     const LimitHistory& history, std::optional<std::int64_t> room);

}  // namespace headroom::judge_limits
