// SPDX-License-Identifier: Apache-2.0
// The ladder: the steps that are tried before a pod is evicted for memory, when they are taken, and
// their history. Each step is off unless the policy enables it.
#pragma once

#include <headroom/eviction_unit.h>
#include <headroom/pod.h>
#include <headroom/quantity.h>
#include <headroom/units.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace headroom {

struct LadderPolicy {
  // Margins above the threshold of memory.available, as a share of capacity; below a margin its
  // step is taken. Absent: the step is off.
  std::optional<float> reclaim_margin;  // reclaim page cache (memory.reclaim)
  std::optional<float>
      lower_high_margin;  // limit BestEffort pods to their current usage (memory.high)
  Bytes reclaim_step{std::int64_t{64} << 20};  // bytes for each write
  Duration lower_high_limit = std::chrono::seconds(30);

  // A container that has waited at its own memory.high for this long is stuck. Absent: not checked.
  std::optional<Duration> stuck_duration;
  Duration raise_high_duration{
      0};                    // its memory.high is first raised for this time; zero: never raised
  bool evict_stuck = false;  // then its pod is evicted

  bool any() const { return reclaim_margin || lower_high_margin || stuck_duration; }
  friend bool operator==(const LadderPolicy&, const LadderPolicy&) = default;
};

// A memory.high that the ladder has changed for a limited time.
struct MemoryHighOverride {
  std::shared_ptr<const Pod> pod;
  CgroupId cgroup;             // the pod's
  Part part{};                 // the cgroup that has the limit
  bool relaxed = false;        // true: raised; false: lowered
  std::optional<Bytes> found;  // absent: no limit
  Bytes set{};
  Instant since;
  Instant until;        // when it ends at the latest
  Instant retry{};      // restoring it failed: the next attempt is not before
  bool ending = false;  // is being restored
};

// A cgroup whose tasks wait at its memory.high.
struct Throttled {
  CgroupId pod;
  CgroupId cgroup;  // the cgroup that has the limit
  Instant since;
  Duration stalled_before{0};  // total wait, at that time
  Duration stalled{0};         // total wait, when it last grew
  Instant last;                // then
  Instant relaxed{};           // when its limit was raised; zero: never
  friend bool operator==(const Throttled&, const Throttled&) = default;
};

struct LadderHistory {
  // A pod that gave back less page cache than was requested.
  struct Exhausted {
    CgroupId cgroup;
    Instant until;
  };
  Instant taking{};        // since when page cache is being reclaimed; zero: it is not
  Instant next_step_at{};  // the next step is not before
  Instant
      above_margin_since{};  // since when the signal is above lower_high_margin; zero: it is below
  Instant next_lowering_at{};  // the next lowering is not before
  std::vector<Exhausted> exhausted;
  std::vector<MemoryHighOverride> held;
  std::vector<Throttled> throttled;
};

}  // namespace headroom
