// SPDX-License-Identifier: Apache-2.0
// read_audit_log(): the lines of the audit log that were not read yet, across rotation and
// restarts.
#pragma once

#include <headroom/result.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace headroom::kube {

// How far a log was read. Inode 0 means that there was no log yet.
struct Cursor {
  std::uint64_t inode = 0;
  std::int64_t offset = 0;  // bytes; after a newline
  friend bool operator==(const Cursor&, const Cursor&) = default;
};

struct AuditChunk {
  std::vector<std::string> lines;  // complete lines, without their newlines
  Cursor cursor;                   // the position after these lines
  bool gap = false;  // the log that was being read is gone, and its unread lines are lost
};

// The most that one call reads: much may have accumulated during an outage.
inline constexpr std::int64_t kMaxReadBytes = 4 << 20;  // bytes

// Without a cursor, reading starts at the end of the log: earlier evictions are not reported. A
// rotated log is read to its end first; it is found by its inode among the files whose names begin
// with the log's name. A truncated log is read from its start.
Result<AuditChunk> read_audit_log(const std::filesystem::path& log,
                                  const std::optional<Cursor>& from);

}  // namespace headroom::kube
