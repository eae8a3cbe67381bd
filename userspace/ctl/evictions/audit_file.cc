// SPDX-License-Identifier: Apache-2.0
#include "ctl/evictions/audit_file.h"

#include "ctl/common/dbus_client.h"
#include "ctl/common/status_document.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <utility>

namespace headroom::ctl {
namespace {

Result<std::string> file_of_daemon() {
  const auto document = fetch_status();
  if (!document)
    return failure(document.error().what + "; name the log with --file", document.error().code);
  const auto status = parse_status(*document);
  if (!status) return tl::make_unexpected(status.error());
  if (status->audit_log.empty()) return failure("headroomd keeps no audit log (auditLog is empty)");
  return status->audit_log;
}

bool exists(const std::string& file) {
  std::error_code code;
  return std::filesystem::exists(file, code) || code;  // after an error it may exist
}

}  // namespace

std::deque<std::string> last_lines(std::istream& log, std::size_t last) {
  std::deque<std::string> lines;
  std::string line;
  while (std::getline(log, line) && !log.eof()) {
    lines.push_back(std::move(line));
    if (last != 0 && lines.size() > last) lines.pop_front();
  }
  return lines;
}

Result<AuditLines> read_audit(const std::string& file, std::size_t last) {
  const auto named = file.empty() ? file_of_daemon() : Result<std::string>(file);
  if (!named) return tl::make_unexpected(named.error());
  if (file.empty() && !exists(*named)) return AuditLines{*named, {}};
  errno = 0;
  std::ifstream log(*named);
  if (!log) return errno_failure("open " + *named, errno);
  return AuditLines{*named, last_lines(log, last)};
}

}  // namespace headroom::ctl
