// SPDX-License-Identifier: Apache-2.0
// LimitPlans: what plan_limit() was given for cgroups near their own memory.max, and what it
// answered, so that it can be asked again.
#pragma once

#include "judge/limits/limit_plan.h"
#include "recording/wire.h"

#include <headroom/units.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace headroom::recording {

struct PlannedLimit {
  CgroupId cgroup;
  judge_limits::LimitPolicy policy;
  judge_limits::LimitHistory before;  // `reading` is not in it
  judge_limits::LimitReading reading;
  std::optional<std::int64_t> room;  // bytes (plan_limit())
  judge_limits::LimitPlan plan;
};

// Those since the ones before.
struct LimitPlans {
  Instant at;              // of the turn before which they were made
  std::uint64_t lost = 0;  // of them, not in the recording
  std::vector<PlannedLimit> plans;
};

void write(Writer& io, const LimitPlans& made);
void read(Reader& io, LimitPlans& made);

// plan_limit() answers the same to the same.
bool is_same_again(const PlannedLimit& planned);

}  // namespace headroom::recording
