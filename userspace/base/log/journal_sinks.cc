// SPDX-License-Identifier: Apache-2.0
#include "base/log/journal_sinks.h"

#include "base/log/journal.h"

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <sys/syslog.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

namespace headroom::log {
namespace {

std::string_view text(const spdlog::details::log_msg& message) {
  return {message.payload.data(), message.payload.size()};
}

int priority(Level level) {
  switch (level) {
    case Level::trace:
    case Level::debug:
      return LOG_DEBUG;
    case Level::info:
    case Level::off:
    case Level::n_levels:
      return LOG_INFO;
    case Level::warn:
      return LOG_WARNING;
    case Level::err:
      return LOG_ERR;
    case Level::critical:
      return LOG_CRIT;
  }
  return LOG_INFO;
}

iovec io_vector(const std::string& assignment) {
  return {const_cast<char*>(assignment.data()), assignment.size()};
}
// The journal takes each field as one piece of memory, "NAME=value"; ours already are.
iovec io_vector(std::string_view assignment) {
  return {const_cast<char*>(assignment.data()), assignment.size()};
}

void add_fields(std::string_view payload, std::vector<iovec>& io_vectors) {
  for (auto mark = payload.find(kFieldSeparator); mark != std::string_view::npos;) {
    const auto next = payload.find(kFieldSeparator, mark + 1);
    io_vectors.push_back(io_vector(payload.substr(mark + 1, next - mark - 1)));
    mark = next;
  }
}

}  // namespace

void JournalSink::sink_it_(const spdlog::details::log_msg& message) {
  const std::string message_field = "MESSAGE=" + std::string(message_of(text(message)));
  const std::string level = "PRIORITY=" + std::to_string(priority(message.level));
  static const std::string kIdentifier =
      std::string("SYSLOG_IDENTIFIER=") + program_invocation_short_name;
  std::vector<iovec> io_vectors{io_vector(message_field), io_vector(level), io_vector(kIdentifier)};
  add_fields(text(message), io_vectors);
  if (sd_journal_sendv(io_vectors.data(), static_cast<int>(io_vectors.size())) < 0)
    count_lost_line();
}

void StderrSink::sink_it_(const spdlog::details::log_msg& message) {
  const auto level = spdlog::level::to_string_view(message.level);
  std::string line(level.data(), level.size());
  line.append(": ").append(message_of(text(message))).append("\n");
  if (::write(STDERR_FILENO, line.data(), line.size()) < 0) count_lost_line();
}

}  // namespace headroom::log
