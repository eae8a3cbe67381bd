// SPDX-License-Identifier: Apache-2.0
// node_working_set(): the memory that the node's processes and active page cache use.
#pragma once

#include "report/view/node_view.h"

#include <cstdint>
#include <optional>

namespace headroom::report {

// In bytes; absent: memory.available is not known. The signal counts preallocated huge pages as not
// available. They are no part of the kubelet's working set, used or not, so they are subtracted.
std::optional<std::int64_t> node_working_set(const NodeView& view);

}  // namespace headroom::report
