// SPDX-License-Identifier: Apache-2.0
// What ends or reloads a daemon is waited for, by one thread: blocked in all that are begun after.
#pragma once

#include <csignal>

namespace headroom {

// SIGTERM, SIGINT and SIGHUP, blocked in this thread; SIGPIPE is ignored: a write says so itself.
sigset_t block_signals();

}  // namespace headroom
