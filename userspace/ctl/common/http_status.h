// SPDX-License-Identifier: Apache-2.0
// The status document over HTTP, for where headroomd is not on the system bus: in a container, the
// bus of the host does not let headroomd own its name.
#pragma once

#include <headroom/result.h>

#include <string>

namespace headroom::ctl {

// headroom.listen of the daemon that headroomctl reads from: the environment variable
// HEADROOM_HTTP, by default 127.0.0.1:9750. Empty: nothing is read over HTTP.
std::string http_address();

// `address` is HOST:PORT with a numeric host, as in headroom.listen.
Result<std::string> fetch_status_over_http(const std::string& address);

}  // namespace headroom::ctl
