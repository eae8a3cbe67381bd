// SPDX-License-Identifier: Apache-2.0
// AuditFile: where the audit log is, and its last lines.
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

// `file` empty: headroomd is asked where it is. `last` 0: all. A log that headroomd has not made
// yet is empty: it makes it at the first eviction.
Result<AuditLines> read_audit(const std::string& file, std::size_t last);

// The last lines of a log; a last line without its end is still being written and left out.
std::deque<std::string> last_lines(std::istream& log, std::size_t last);

}  // namespace headroom::ctl
