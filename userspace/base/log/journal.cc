// SPDX-License-Identifier: Apache-2.0
#include "base/log/journal.h"

#include "base/log/journal_sinks.h"
#include "base/printable.h"

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
  spdlog::init_thread_pool(kQueue, 1);
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

// Code that logs after this writes to stderr, unqueued: spdlog::shutdown() would leave it without a
// logger.
Logging::~Logging() {
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("headroomd", std::make_shared<StderrSink>()));
  spdlog::details::registry::instance().set_tp(nullptr);  // ends the queue, emptied
}

}  // namespace headroom::log
