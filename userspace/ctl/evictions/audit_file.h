// SPDX-License-Identifier: Apache-2.0
// read_audit(): finds the audit log and reads its last lines.
#pragma once

#include <headroom/result.h>

#include <cstddef>
#include <deque>
#include <istream>
#include <string>

namespace headroom::ctl {

struct AuditLines {
  std::string file;
  std::deque<std::string> lines;  // oldest first
};

// If `file` is empty, headroomd is asked for the path. `last` 0 means all lines. If headroomd's log
// does not exist there are no lines: headroomd creates it at the first eviction.
Result<AuditLines> read_audit(const std::string& file, std::size_t last);

// The last lines of a log. A last line without a newline is still being written and is omitted.
std::deque<std::string> last_lines(std::istream& log, std::size_t last);

}  // namespace headroom::ctl
