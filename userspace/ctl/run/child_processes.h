// SPDX-License-Identifier: Apache-2.0
// Programs that headroomctl starts and waits for, passing the signals on that should end them.
#pragma once

#include <headroom/result.h>

#include <sys/types.h>

#include <string>
#include <vector>

namespace headroom::ctl {

// At most so many at once.
inline constexpr std::size_t kMaxChildren = 64;

// From here on SIGTERM and SIGHUP go to the children; ^C reaches them by itself.
void forward_signals();

Result<pid_t> spawn(const std::vector<std::string>& arguments);

// Of each its exit status, or 128 and the signal that ended it; the first that is not 0, else 0.
int wait_for(const std::vector<pid_t>& children);

}  // namespace headroom::ctl
