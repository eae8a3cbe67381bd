// SPDX-License-Identifier: Apache-2.0
// A TCP socket that listens on a configured address, such as headroom.listen.
#pragma once

#include "base/file_io.h"

#include <headroom/result.h>

#include <string>

namespace headroom {

// `address`: "127.0.0.1:9750", "[::1]:9750", "0.0.0.0:9751" or "HOST:PORT"; port 0 lets the kernel
// choose one. The socket is non-blocking and has SO_REUSEADDR: the address can be used again at
// once after a restart. An error names the call that failed, not the address.
Result<Fd> listen_on(const std::string& address);

// The port that a listening socket has; 0: unknown.
int port_of(const Fd& listening);

}  // namespace headroom
