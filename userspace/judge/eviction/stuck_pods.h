// SPDX-License-Identifier: Apache-2.0
// Stuck pods: a container that waits at its own memory.high, for a quarter of the time or more, can
// neither go on nor be killed by the kernel. Its limit is raised once, then its pod is evicted.
#pragma once

#include "judge/eviction/ladder.h"

namespace headroom::judge_eviction {

// Updates in the history which containers are at their limits, and how long they have waited.
void update_throttled(LadderPass& pass);

// Appends the decisions that are due.
void raise_or_evict_stuck(LadderPass& pass);

// A container of this pod waits at its own limit, for long enough.
bool is_stuck(const Policy& policy, const History& history, CgroupId pod);

}  // namespace headroom::judge_eviction
