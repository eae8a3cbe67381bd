// SPDX-License-Identifier: Apache-2.0
// Follow: the lines of a log that were not read yet, over rotation and restarts.
#pragma once

#include <headroom/result.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace headroom::kube {

// How far a log has been read. An inode of zero: there was no log yet.
struct Cursor {
  std::uint64_t inode = 0;
  std::int64_t offset = 0;  // bytes; after a newline
  friend bool operator==(const Cursor&, const Cursor&) = default;
};

struct AuditChunk {
  std::vector<std::string> lines;  // whole ones, without their newlines
  Cursor cursor;                   // after them
  bool gap = false;  // the log it was reading is gone, and what was not read of it with it
};

// The most that one call reads: an outage may have left much.
inline constexpr std::int64_t kMaxReadBytes = 4 << 20;  // bytes

// Without a cursor it starts at the end of the log: earlier evictions are not reported. A rotated
// log is first read to its end, found by its inode among the files whose names begin with the
// log's; a truncated one is read from its start.
Result<AuditChunk> read_audit_log(const std::filesystem::path& log,
                                  const std::optional<Cursor>& from);

}  // namespace headroom::kube
