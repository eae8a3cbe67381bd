// SPDX-License-Identifier: Apache-2.0
// headroomctl top: the node, live.
#pragma once

namespace headroom::ctl {

struct TopOptions {
  bool once = false;  // one frame, on stdout
  bool json = false;  // the status document, one line each second
};

// Returns the exit status; says what failed in one line on stderr.
int run_top(const TopOptions& options);

}  // namespace headroom::ctl
