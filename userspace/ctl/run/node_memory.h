// SPDX-License-Identifier: Apache-2.0
// Reads this node's memory, swap and sizes of huge pages.
#pragma once

#include "judge/allocatable/pod_cgroup.h"

#include <headroom/result.h>

namespace headroom::ctl {

// `allocatable` is headroomd's value; 0 means the whole capacity.
Result<NodeMemory> node_memory(Bytes allocatable);

}  // namespace headroom::ctl
