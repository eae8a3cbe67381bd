// SPDX-License-Identifier: Apache-2.0
#include "report/page/audit_tail.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

namespace headroom::report {
namespace {

// Whole lines: [from, to) of the file.
struct Span {
  std::int64_t from = 0;
  std::int64_t to = 0;
};

// Looks for newlines from the end: the one that ends the last whole line, and the one before the
// first line wanted. What lies farther back than `kFarthest` is as if it were not there.
Span last_lines(std::ifstream& log, std::int64_t size, std::size_t last) {
  std::array<char, 1 << 16> block;
  const std::int64_t stop = std::max<std::int64_t>(0, size - AuditTail::kFarthest);
  Span span;
  std::size_t ends = 0;
  for (std::int64_t end = size; end > stop;) {
    const std::int64_t begin = std::max(stop, end - static_cast<std::int64_t>(block.size()));
    log.seekg(begin);
    if (!log.read(block.data(), end - begin)) return {};  // it was cut meanwhile
    for (std::int64_t at = end; at-- > begin;) {
      if (block[static_cast<std::size_t>(at - begin)] != '\n') continue;
      if (ends++ == 0) span.to = at + 1;
      span.from = at + 1;
      if (ends > last) return span;
    }
    end = begin;
  }
  if (stop == 0) span.from = 0;  // else the line there is not seen as a whole
  return ends == 0 ? Span{} : span;
}

// A line half written before the machine went down must not spoil the list.
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
  const Span span = last_lines(tail->log_, found.st_size, std::min(last, kMost));
  tail->log_.clear();
  tail->log_.seekg(span.from);
  tail->left_ = span.to - span.from;
  return tail;
}

bool AuditTail::append_piece(std::string& out) {
  if (ended_) return false;
  if (!begun_) out += '[';
  begun_ = true;
  std::string line;
  while (left_ > 0 && std::getline(log_, line)) {
    left_ -= static_cast<std::int64_t>(line.size()) + 1;
    if (!is_record(line)) continue;
    out += had_record_ ? ",\n" : "\n";
    out += line;
    had_record_ = true;
    return true;
  }
  out += "\n]\n";
  ended_ = true;
  return true;
}

std::string audit_tag(const std::string& file) {
  struct stat found {};
  if (file.empty() || ::stat(file.c_str(), &found) != 0) return "";
  return fmt::format("\"{:x}-{:x}-{:x}.{:x}\"", found.st_ino, found.st_size, found.st_mtim.tv_sec,
                     found.st_mtim.tv_nsec);
}

}  // namespace headroom::report
