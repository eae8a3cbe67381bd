// SPDX-License-Identifier: Apache-2.0
// headroomctl evictions: the audit log, read back.
#pragma once

#include "ctl/paint.h"

#include <cstddef>
#include <deque>
#include <istream>
#include <string>

namespace headroom::ctl {

struct EvictionsOptions {
  std::string file;       // empty: ask headroomd which
  std::size_t last = 20;  // 0: all
  bool json = false;
};

// The last lines of a log; a last line without its end is still being written and left out.
std::deque<std::string> last_lines(std::istream& log, std::size_t last);

// One row for each line; `unreadable` counts those that are no record.
std::string render_evictions(const std::deque<std::string>& lines, const Screen& screen,
                             std::size_t& unreadable);

// Returns the exit status; says what failed in one line on stderr.
int run_evictions(const EvictionsOptions& options);

}  // namespace headroom::ctl
