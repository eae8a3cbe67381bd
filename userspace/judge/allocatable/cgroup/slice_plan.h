// SPDX-License-Identifier: Apache-2.0
// SlicePlan: the changes for one slice, from its desired and its actual values.
#pragma once

#include "judge/allocatable/cgroup/cgroup_values.h"

#include <headroom/units.h>

#include <optional>
#include <string>
#include <vector>

namespace headroom {

struct SliceReading {
  std::optional<CgroupValues> values{};  // absent: there is no such cgroup
  CgroupId cgroup{};                     // that was read
  std::vector<std::string>
      missing_controllers{};      // controllers that the node has and this cgroup lacks
  Bytes page{4096};               // of the kernel that the values were read from
  std::optional<Bytes> memory{};  // in use
  std::optional<Tasks> tasks{};
  std::optional<Duration> cpu{};  // total since its creation
};

// The history of a slice between two checks.
struct SliceHistory {
  bool exists = false;
  std::vector<CgroupSetting> confirmed{};  // desired, and read back as desired before
  // False: systemd may still be making slices, and what is read lies between two states.
  // Nothing is confirmed then, and no setting has drifted.
  bool settled = true;
  unsigned attempts = 0;  // attempts to correct it, since it was last correct
  Instant not_before{};   // the next attempt is not before
};

struct SlicePlan {
  bool create = false;                  // create it, or enable the controllers it lacks
  CgroupValues write{};                 // values that differ from the desired ones
  CgroupValues unread{};                // desired values whose actual value is unknown
  std::optional<Bytes> excess_usage{};  // the usage, if it exceeds the desired memory.max
  // Settings that were correct, are still desired, and have changed; "slice" for the whole slice.
  std::vector<std::string> drifted{};
  std::optional<Instant> due{};  // when to act; absent: nothing is to be done
  SliceHistory after{};
};

// A memory.max below current usage is not in the plan: the kernel would kill to get there, and
// would block the writer, which is systemd. It is written once usage is lower.
//
// With `step`, usage will not fall by itself: the caller reclaims the distance to memory.max, and
// the limit follows usage, one to two steps above it, and only downwards.
SlicePlan plan_slice(const CgroupValues& desired, const SliceReading& reading,
                     const SliceHistory& before, Instant at,
                     std::optional<Bytes> step = std::nullopt);

// Records an attempt: the next one waits 100 ms, doubling to a minute while the last one had no
// effect. So a conflict with another program costs at most ten calls a second.
void record_attempt(SliceHistory& history, Instant at);

}  // namespace headroom
