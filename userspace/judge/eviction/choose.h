// SPDX-License-Identifier: Apache-2.0
// Choose: rank the pods of this instant and pick who is evicted.
#pragma once

#include <headroom/judge.h>

namespace headroom::judge_eviction {

// Writes verdict.ranking, first to die first, and appends at most one decision.
void choose(const Policy& policy, const Snapshot& snapshot, const Reason& reason, Verdict& verdict);

}  // namespace headroom::judge_eviction
