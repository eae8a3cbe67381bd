// SPDX-License-Identifier: Apache-2.0
// The ladder: what is tried before a pod is evicted for memory, and when; and what is remembered of
// it. Off unless policy asks.
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
  // Above the threshold of memory.available, as a share of capacity: what is done below it. Absent:
  // it is not done.
  std::optional<float> reclaim_margin;  // page cache is taken (memory.reclaim)
  std::optional<float>
      lower_high_margin;  // BestEffort pods are held at what they use (memory.high)
  Bytes reclaim_step{std::int64_t{64} << 20};  // at a time
  Duration lower_high_limit = std::chrono::seconds(30);

  // A container that has waited at its own memory.high for this long is stuck. Absent: not checked.
  std::optional<Duration> stuck_duration;
  Duration raise_high_duration{
      0};                    // its memory.high is raised for so long first; zero: it is not ours
  bool evict_stuck = false;  // then its pod goes

  bool any() const { return reclaim_margin || lower_high_margin || stuck_duration; }
  friend bool operator==(const LadderPolicy&, const LadderPolicy&) = default;
};

// A memory.high that is not what was found, for a while.
struct MemoryHighOverride {
  std::shared_ptr<const Pod> pod;
  CgroupId cgroup;             // the pod's
  Part part{};                 // the cgroup that has the limit
  bool relaxed = false;        // raised; else squeezed
  std::optional<Bytes> found;  // absent: no limit
  Bytes set{};
  Instant since;
  Instant until;        // when it ends at the latest
  Instant retry{};      // ending it failed: not again before
  bool ending = false;  // under way
};

// A cgroup that waits at its memory.high.
struct Throttled {
  CgroupId pod;
  CgroupId cgroup;  // the cgroup that has the limit
  Instant since;
  Duration stalled_before{0};  // in all, then
  Duration stalled{0};         // in all, when it was last seen to wait
  Instant last;                // then
  Instant relaxed{};           // its limit was raised once; zero: never
  friend bool operator==(const Throttled&, const Throttled&) = default;
};

struct LadderHistory {
  // A pod that gave back less page cache than was requested.
  struct Exhausted {
    CgroupId cgroup;
    Instant until;
  };
  Instant taking{};              // cache is being taken since; zero: not
  Instant next_step_at{};        // no step before
  Instant above_margin_since{};  // above where best-effort is squeezed since; zero: below
  Instant next_lowering_at{};    // not again before
  std::vector<Exhausted> exhausted;
  std::vector<MemoryHighOverride> held;
  std::vector<Throttled> throttled;
};

}  // namespace headroom
