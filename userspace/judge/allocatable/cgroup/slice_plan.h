// SPDX-License-Identifier: Apache-2.0
// SlicePlan: what is to be done about one slice, from what it should be and what was read of it.
#pragma once

#include "judge/allocatable/cgroup/cgroup_values.h"

#include <headroom/units.h>

#include <optional>
#include <string>
#include <vector>

namespace headroom {

struct SliceReading {
  std::optional<CgroupValues> values{};  // absent: there is no such cgroup
  std::vector<std::string>
      missing_controllers{};      // controllers that the node offers and this has not
  Bytes page{4096};               // of the kernel that the values were read from
  std::optional<Bytes> memory{};  // in use
  std::optional<Tasks> tasks{};
  std::optional<Duration> cpu{};  // total since it was made
};

// What is remembered of a slice from one look to the next.
struct SliceHistory {
  bool exists = false;
  std::vector<CgroupSetting> confirmed{};  // wanted, and once read back so
  unsigned attempts = 0;                   // to put it right, since it last was
  Instant not_before{};                    // of the next try
};

struct SlicePlan {
  bool create = false;                  // make it, or give it the controllers it lacks
  CgroupValues write{};                 // what is otherwise than it should be
  CgroupValues unread{};                // what should be something, and is not known
  std::optional<Bytes> excess_usage{};  // in use, when that is more than memory.max is to be
  // What was right, is still wanted, and is no longer so: knobs, or "slice" for all of it.
  std::vector<std::string> drifted{};
  std::optional<Instant> due{};  // when to act on it; absent: nothing to do
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

// A try has begun: the next waits 100 ms, doubling to a minute while the last one did not help. So
// a writer that is against us costs the bus ten calls a second at the most.
void record_attempt(SliceHistory& history, Instant at);

}  // namespace headroom
