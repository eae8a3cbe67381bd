// SPDX-License-Identifier: Apache-2.0
// Limits: pods that use more local storage than they may (kubelet: eviction).
#pragma once

#include <headroom/judge.h>

namespace headroom::judge_eviction {

// Appends a decision for every pod over an emptyDir's sizeLimit, its own limit or a container's, in
// that order, the first that matches. True: at least one was decided.
bool enforce_storage_limits(const Policy& policy, const Snapshot& snapshot, Verdict& verdict);

}  // namespace headroom::judge_eviction
