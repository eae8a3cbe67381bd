// SPDX-License-Identifier: Apache-2.0
// Eviction message: the kubelet's message for a Decision, with figures from the snapshot.
#pragma once

#include "report/view/node_view.h"

#include <headroom/decision.h>
#include <headroom/policy.h>
#include <headroom/snapshot.h>

#include <string>

namespace headroom::report {

std::string eviction_message(const Decision& decision, const Policy& policy,
                             const Snapshot& snapshot, const CgroupNames* names);

}  // namespace headroom::report
