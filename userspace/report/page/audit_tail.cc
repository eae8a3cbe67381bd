// SPDX-License-Identifier: Apache-2.0
#include "report/page/audit_tail.h"

#include "report/eviction/audit_line.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

namespace headroom::report {
namespace {

// Whole lines: [from, to) of the file.
struct LineRange {
  std::int64_t from = 0;
  std::int64_t to = 0;
};

// Looks for newlines from the end: the one that ends the last whole line, and the one before the
// first line wanted. Bytes farther back than the limit are ignored.
LineRange last_lines(std::ifstream& log, std::int64_t size, std::size_t last) {
  std::array<char, 1 << 16> block;
  const std::int64_t stop = std::max<std::int64_t>(0, size - AuditTail::kMaxBytesFromEnd);
  LineRange line_range;
  std::size_t ends = 0;
  for (std::int64_t end = size; end > stop;) {
    const std::int64_t begin = std::max(stop, end - static_cast<std::int64_t>(block.size()));
    log.seekg(begin);
    if (!log.read(block.data(), end - begin)) return {};  // it was truncated meanwhile
    for (std::int64_t at = end; at-- > begin;) {
      if (block[static_cast<std::size_t>(at - begin)] != '\n') continue;
      if (ends++ == 0) line_range.to = at + 1;
      line_range.from = at + 1;
      if (ends > last) return line_range;
    }
    end = begin;
  }
  if (stop == 0) line_range.from = 0;  // otherwise its first line may be incomplete
  return ends == 0 ? LineRange{} : line_range;
}

// A line that was partially written before a crash must not break the list.
bool is_record(const std::string& line) {
  return line.starts_with('{') && nlohmann::json::accept(line);
}

}  // namespace

Result<std::unique_ptr<AuditTail>> AuditTail::open(const std::string& file, std::size_t last) {
  auto tail = std::make_unique<AuditTail>();
  struct stat found {};
  if (file.empty() || (::stat(file.c_str(), &found) != 0 && errno == ENOENT)) return tail;
  errno = 0;
  tail->log_.open(file, std::ios::binary);
  if (!tail->log_) return errno_failure("open " + file, errno);
  const LineRange line_range = last_lines(tail->log_, found.st_size, std::min(last, kMax));
  tail->log_.clear();
  tail->log_.seekg(line_range.from);
  tail->bytes_left_ = line_range.to - line_range.from;
  return tail;
}

bool AuditTail::append_chunk(std::string& out) {
  if (closed_) return false;
  if (!opened_) out += '[';
  opened_ = true;
  std::string line;
  while (bytes_left_ > 0 && std::getline(log_, line)) {
    bytes_left_ -= static_cast<std::int64_t>(line.size()) + 1;
    if (!is_record(line)) continue;
    out += had_record_ ? ",\n" : "\n";
    out += with_new_fields(std::move(line));
    had_record_ = true;
    return true;
  }
  out += "\n]\n";
  closed_ = true;
  return true;
}

std::string audit_etag(const std::string& file) {
  struct stat found {};
  if (file.empty() || ::stat(file.c_str(), &found) != 0) return "";
  return fmt::format("\"{:x}-{:x}-{:x}.{:x}\"", found.st_ino, found.st_size, found.st_mtim.tv_sec,
                     found.st_mtim.tv_nsec);
}

}  // namespace headroom::report
