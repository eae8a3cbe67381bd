// SPDX-License-Identifier: Apache-2.0
// The node's resources: what there is, what is kept back, what was promised and what may be used.
#pragma once

#include "ctl/common/status_document.h"
#include "ctl/common/text_table.h"

#include <string>

namespace headroom::ctl {

// "" where nothing is known.
std::string resource_table_text(const NodeResources& node, const Screen& screen);

}  // namespace headroom::ctl
