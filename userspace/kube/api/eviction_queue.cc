// SPDX-License-Identifier: Apache-2.0
#include "kube/api/eviction_queue.h"

#include "base/file_io.h"
#include "base/state/checked_json.h"
#include "base/state/json_integer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

namespace headroom::state {

template <>
inline constexpr unsigned kEnumerators<kube::EvictionRecord::Cause> = 3;

HEADROOM_FIELDS(kube::Cursor, inode, offset);
HEADROOM_FIELDS(kube::PublishedOnNode, conditions, taints);
HEADROOM_FIELDS(kube::EvictionRecord, uid, name, pod_namespace, cause, signal, message, time,
                stamp);
HEADROOM_FIELDS(kube::PendingEviction, evicted, first_time, first_stamp, count, steps, event_made,
                uid_unverified, old_eviction);
HEADROOM_FIELDS(kube::EvictionQueue, cursor, pending_evictions, node);

// Retry times are not saved: after a restart every open step is due.
template <>
struct Codec<kube::StepState> {
  static nlohmann::json encode(const kube::StepState& step) { return step.done; }
  static bool decode(const nlohmann::json& json, kube::StepState& step) {
    step = {.done = json.get<bool>()};
    return true;
  }
};

}  // namespace headroom::state

namespace headroom::kube {
namespace {

namespace fs = std::filesystem;

struct Open {
  Fd fd;
  std::uint64_t inode = 0;
  std::int64_t size = 0;
};

// If the file is missing, the result has no descriptor.
Result<Open> open_log(const fs::path& path) {
  Open log{.fd = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW))};
  if (!log.fd && errno == ENOENT) return log;
  if (!log.fd) return errno_failure("open " + path.string(), errno);
  struct stat found {};
  if (::fstat(log.fd.get(), &found) != 0) return errno_failure("stat " + path.string(), errno);
  log.inode = found.st_ino;
  log.size = found.st_size;
  return log;
}

// The file to which the log was renamed; no descriptor if there is none.
Open find_rotated(const fs::path& path, std::uint64_t inode) {
  const std::string stem = path.filename().string();
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(path.parent_path(), ignored)) {
    if (!entry.path().filename().string().starts_with(stem)) continue;
    if (auto log = open_log(entry.path()); log && log->fd && log->inode == inode)
      return std::move(*log);
  }
  return {};
}

// Whether a line ends at `offset`. If not, the inode now belongs to another file, or the file was
// truncated in place.
bool ends_a_line(const Open& log, std::int64_t offset) {
  if (offset == 0) return true;
  char before = 0;
  return offset <= log.size && ::pread(log.fd.get(), &before, 1, offset - 1) == 1 && before == '\n';
}

Result<std::string> read_at(const Open& log, const fs::path& path, std::int64_t offset) {
  std::string text(static_cast<std::size_t>(std::min(log.size - offset, kMaxReadBytes)), '\0');
  const ssize_t got = ::pread(log.fd.get(), text.data(), text.size(), offset);
  if (got < 0) return errno_failure("read " + path.string(), errno);
  text.resize(static_cast<std::size_t>(got));
  return text;
}

// The offset after the line that contains `offset`; absent while that line has no end.
std::optional<std::int64_t> next_line(const Open& log, std::int64_t offset) {
  std::array<char, 1 << 16> block;
  for (ssize_t got; (got = ::pread(log.fd.get(), block.data(), block.size(), offset)) > 0;
       offset += got) {
    const std::string_view text(block.data(), static_cast<std::size_t>(got));
    if (const auto end = text.find('\n'); end != std::string_view::npos)
      return offset + static_cast<std::int64_t>(end) + 1;
  }
  return std::nullopt;
}

// headroomd writes no line longer than kMaxReadBytes, so such a line is skipped.
void take_lines(const Open& log, const std::string& text, AuditChunk& chunk) {
  std::int64_t& offset = chunk.cursor.offset;
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    chunk.lines.push_back(text.substr(begin, end - begin));
  const auto size = static_cast<std::int64_t>(text.size());
  if (begin == 0 && size == kMaxReadBytes)
    offset = next_line(log, offset + size).value_or(offset);
  else
    offset += static_cast<std::int64_t>(begin);
}

Result<AuditChunk> read_from(const Open& log, const fs::path& path, Cursor from) {
  AuditChunk chunk{.lines = {}, .cursor = from};
  if (!ends_a_line(log, from.offset)) chunk.cursor.offset = 0;
  const auto text = read_at(log, path, chunk.cursor.offset);
  if (!text) return tl::make_unexpected(text.error());
  take_lines(log, *text, chunk);
  return chunk;
}

Cursor end_of(const Open& log) {
  Cursor end{log.inode, log.size};
  while (end.offset > 0 && !ends_a_line(log, end.offset))
    --end.offset;  // a line is still being written
  return end;
}

}  // namespace

Result<AuditChunk> read_audit_log(const fs::path& path, const std::optional<Cursor>& from) {
  const auto log = open_log(path);
  if (!log) return tl::make_unexpected(log.error());
  if (!from) return AuditChunk{.lines = {}, .cursor = log->fd ? end_of(*log) : Cursor{}};
  if (log->fd && log->inode == from->inode) return read_from(*log, path, *from);
  const Open rotated = from->inode ? find_rotated(path, from->inode) : Open{};
  if (rotated.fd) {
    auto rest = read_from(rotated, path, *from);
    if (!rest || !rest->lines.empty() || !log->fd) return rest;
  }
  if (!log->fd) return AuditChunk{.lines = {}, .cursor = *from};
  auto chunk = read_from(*log, path, {log->inode, 0});
  if (chunk) chunk->gap = from->inode && !rotated.fd;
  return chunk;
}

namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 2;

// --- version 1, of release 0.1: without a checksum

constexpr std::array<std::string_view, 3> kCauseNames{"threshold", "limit", "taint"};

EvictionRecord::Cause cause_named(const std::string& word) {
  const auto found = std::find(kCauseNames.begin(), kCauseNames.end(), word);
  return found == kCauseNames.end()
             ? EvictionRecord::Cause::kThreshold
             : static_cast<EvictionRecord::Cause>(found - kCauseNames.begin());
}

PendingEviction pending_of_json(const Json& json) {
  PendingEviction pending;
  pending.evicted = {.uid = json.at("uid"),
                     .name = json.at("name"),
                     .pod_namespace = json.at("namespace"),
                     .cause = cause_named(json.at("why")),
                     .signal = json.at("signal"),
                     .message = json.at("message"),
                     .time = json.at("time"),
                     .stamp = json.at("stamp")};
  pending.first_time = json.at("firstTime");
  pending.first_stamp = json.at("firstStamp");
  pending.count = integer_of<unsigned>(json.at("count"));
  pending.event_made = json.at("eventMade");
  for (const Step step : {Step::kStatus, Step::kAct, Step::kEvent})
    for (const Json& done : json.at("done"))
      if (done == name(step)) pending.at(step).done = true;
  return pending;
}

EvictionQueue queue_of_json(const Json& json) {
  EvictionQueue queue;
  if (const Json& cursor = json.at("cursor"); !cursor.is_null())
    queue.cursor = Cursor{.inode = integer_of<std::uint64_t>(cursor.at("inode")),
                          .offset = integer_of<std::int64_t>(cursor.at("offset"))};
  for (const Json& pending : json.at("postings"))
    queue.pending_evictions.push_back(pending_of_json(pending));
  queue.node = {.conditions = json.at("node").at("conditions"),
                .taints = json.at("node").at("taints")};
  return queue;
}

}  // namespace

void take(EvictionQueue& queue, EvictionRecord evicted) {
  for (PendingEviction& pending : queue.pending_evictions)
    if (pending.evicted.uid == evicted.uid)
      return merge_repeated_eviction(pending, std::move(evicted));
  queue.pending_evictions.push_back(pending_from(std::move(evicted)));
}

std::string as_text(const EvictionQueue& queue) {
  return state::to_checked_text(kVersion, queue);
}

Result<EvictionQueue> queue_of(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    if (json.at("version") == 1) return queue_of_json(json);
  } catch (const nlohmann::json::exception& thrown) {
    return failure(thrown.what());
  }
  return state::from_checked_text<EvictionQueue>(text, kVersion);
}

}  // namespace headroom::kube
