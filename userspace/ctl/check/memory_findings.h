// SPDX-License-Identifier: Apache-2.0
// Findings about memory: swap, zswap, and memory of the kernel itself.
#pragma once

#include "ctl/check/findings.h"

#include <vector>

namespace headroom::ctl::check {

// check_zswap() is among them if headroom.podSwap asks for it.
std::vector<Finding> memory_findings(const HostFacts& facts);

}  // namespace headroom::ctl::check
