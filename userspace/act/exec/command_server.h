// SPDX-License-Identifier: Apache-2.0
// The side of headroom-commands: runs the command that a connection asks for.
#pragma once

#include "base/file_io.h"

#include <headroom/result.h>
#include <headroom/units.h>

namespace headroom::act {

// Waits for the request, runs the command, and answers with its result, or with the reason for
// which it was refused. A peer that is not root gets no answer. The command is killed if the peer
// cancels it. If the peer is gone, a container's command goes on until its time is over, as
// headroomd expects after a restart, and one of the operator is killed. An error: no answer could
// be sent.
Result<> serve_command(const Fd& connection, Instant (*clock)());

}  // namespace headroom::act
