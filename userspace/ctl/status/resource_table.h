// SPDX-License-Identifier: Apache-2.0
// resource_table_text(): the node's resources: capacity, reserved, allocatable, requests and
// limits.
#pragma once

#include "ctl/common/status_document.h"
#include "ctl/common/text_table.h"

#include <string>

namespace headroom::ctl {

// "" if the capacity is unknown.
std::string resource_table_text(const NodeResources& node, const Screen& screen);

}  // namespace headroom::ctl
