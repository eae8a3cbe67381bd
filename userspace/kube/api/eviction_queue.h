// SPDX-License-Identifier: Apache-2.0
// EvictionQueue: the pending evictions and the position in the audit log. Both are written as one
// file, so that no eviction is lost between the two and none is taken twice.
#pragma once

#include "kube/api/pending_eviction.h"

#include <headroom/result.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace headroom::kube {

// read_audit_log(): the lines of the audit log that were not read yet, across rotation and
// restarts.

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

// What was published on the Node object. It must be removed when it is no longer wanted.
struct PublishedOnNode {
  bool conditions = false;
  bool taints = false;
  friend bool operator==(const PublishedOnNode&, const PublishedOnNode&) = default;
};

struct EvictionQueue {
  std::optional<Cursor> cursor;
  std::vector<PendingEviction> pending_evictions;  // oldest first
  PublishedOnNode node;
  friend bool operator==(const EvictionQueue&, const EvictionQueue&) = default;
};

// Adds an eviction, or merges it with the pending one of the same pod.
void take(EvictionQueue& queue, EvictionRecord evicted);

// Retry times are not saved: after a restart every open step is due.
std::string as_text(const EvictionQueue& queue);
// An error says what is wrong with the text.
Result<EvictionQueue> queue_of(const std::string& text);

}  // namespace headroom::kube
