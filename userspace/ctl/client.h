// SPDX-License-Identifier: Apache-2.0
// Client: asking headroomd over the system bus.
#pragma once

#include <headroom/result.h>

#include <string>

namespace headroom::ctl {

// The status document, as headroomd wrote it. Errors tell the operator what to look at.
Result<std::string> fetch_status();

}  // namespace headroom::ctl
