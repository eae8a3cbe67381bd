// SPDX-License-Identifier: Apache-2.0
// Child processes that headroomctl starts and waits for. It forwards terminating signals to them.
#pragma once

#include <headroom/result.h>

#include <sys/types.h>

#include <string>
#include <vector>

namespace headroom::ctl {

// The most children at one time.
inline constexpr std::size_t kMaxChildren = 64;

// From now on SIGTERM and SIGHUP are forwarded to the children. ^C reaches them by itself.
void forward_signals();

Result<pid_t> spawn(const std::vector<std::string>& arguments);

// Waits for all children. Returns the first status that is not 0, else 0: an exit status, or 128
// plus the signal that ended the child.
int wait_for(const std::vector<pid_t>& children);

}  // namespace headroom::ctl
