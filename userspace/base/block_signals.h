// SPDX-License-Identifier: Apache-2.0
// Signals that end or reload a daemon are blocked in every thread, and one thread waits for them.
#pragma once

#include <csignal>

namespace headroom {

// Blocks SIGTERM, SIGINT and SIGHUP in this thread and in those it starts later, and returns the
// set. SIGPIPE is ignored: write() returns EPIPE.
sigset_t block_signals();

}  // namespace headroom
