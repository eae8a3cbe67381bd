// SPDX-License-Identifier: Apache-2.0
#include "base/log/journal.h"

#include "base/human_readable.h"
#include "base/process_stat.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>

#include <spdlog/async.h>
#include <spdlog/spdlog.h>

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
// The journal takes each field as one buffer "NAME=value"; the fields are already encoded so.
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

namespace headroom::log {
namespace {

// Enough for a burst of evictions with their rankings; allocated once, at the start.
constexpr std::size_t kQueue = 1024;

std::atomic<std::uint64_t> lost_lines{0};

}  // namespace

void count_lost_line() {
  lost_lines.fetch_add(1, std::memory_order_relaxed);
}

std::uint64_t lost() {
  const auto queue = spdlog::thread_pool();
  return lost_lines.load(std::memory_order_relaxed) + (queue ? queue->overrun_counter() : 0);
}

std::string encode(std::string_view message, std::initializer_list<Field> fields) {
  std::string payload = printable(message);
  for (const Field& field : fields) {
    if (field.value.empty()) continue;
    payload.append(1, kFieldSeparator)
        .append(field.name)
        .append(1, '=')
        .append(printable(field.value));
  }
  return payload;
}

std::string_view message_of(std::string_view payload) {
  return payload.substr(0, payload.find(kFieldSeparator));
}

void write(Level level, std::string_view message, std::initializer_list<Field> fields) {
  try {
    if (spdlog::should_log(level))
      spdlog::log(level, spdlog::string_view_t(encode(message, fields)));
  } catch (const std::exception&) {
    count_lost_line();
  }
}

void write_formatted(Level level, fmt::string_view format, fmt::format_args args) {
  try {
    if (spdlog::should_log(level))
      spdlog::log(level, spdlog::string_view_t(printable(fmt::vformat(format, args))));
  } catch (const std::exception&) {
    count_lost_line();
  }
}

void set_level(std::string_view level) {
  if (level == "debug")
    spdlog::set_level(Level::debug);
  else if (level == "warning")
    spdlog::set_level(Level::warn);
  else if (level == "error")
    spdlog::set_level(Level::err);
  else
    spdlog::set_level(Level::info);
}

bool stderr_is_journal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat is {};
  if (!stream || ::fstat(STDERR_FILENO, &is) != 0) return false;
  const std::string here = std::to_string(is.st_dev) + ":" + std::to_string(is.st_ino);
  return here == stream;
}

Logging::Logging(std::string_view level) {
  spdlog::init_thread_pool(kQueue, 1, [] { report::set_thread_name("log"); });
  std::shared_ptr<spdlog::sinks::sink> sink;
  if (stderr_is_journal())
    sink = std::make_shared<JournalSink>();
  else
    sink = std::make_shared<StderrSink>();
  auto logger =
      std::make_shared<spdlog::async_logger>("headroomd", std::move(sink), spdlog::thread_pool(),
                                             spdlog::async_overflow_policy::overrun_oldest);
  logger->set_error_handler([](const std::string&) { count_lost_line(); });
  spdlog::set_default_logger(std::move(logger));
  set_level(level);
}

// Code that logs after this writes to stderr without the queue: after spdlog::shutdown() there
// would be no logger.
Logging::~Logging() {
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("headroomd", std::make_shared<StderrSink>()));
  spdlog::details::registry::instance().set_tp(nullptr);  // empties and ends the queue
}

}  // namespace headroom::log
