// SPDX-License-Identifier: Apache-2.0
// What this node has of memory, swap and sizes of huge pages.
#pragma once

#include "judge/allocatable/pod_cgroup.h"

#include <headroom/result.h>

namespace headroom::ctl {

// `allocatable` as headroomd works it out; nothing of it: all there is.
Result<NodeMemory> node_memory(Bytes allocatable);

}  // namespace headroom::ctl
