// SPDX-License-Identifier: Apache-2.0
// Journal: writes log lines to the systemd journal with fields, or to stderr; and log_exceptions(),
// which logs what a callback throws.
//
// Lines pass through a bounded queue to another thread: if journald hangs, the oldest lines are
// lost and counted, and the caller does not wait.
#pragma once

#include <cstdint>
#include <exception>
#include <initializer_list>
#include <mutex>
#include <string_view>

#include <spdlog/common.h>
#include <spdlog/fmt/fmt.h>
#include <spdlog/sinks/base_sink.h>

namespace headroom::log {

// The two sinks of the log queue: the systemd journal and stderr.

// Separates the message from its fields; ASCII "record separator", which no name contains.
inline constexpr char kFieldSeparator = '\x1e';

// Counts a line that was not written.
void count_lost_line();

class JournalSink final : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}
};

class StderrSink final : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}
};

using Level = spdlog::level::level_enum;

// A journal field beside the message, such as {"HEADROOM_POD", "default/hog"}.
struct Field {
  std::string_view name;
  std::string_view value;
};

// MESSAGE_ID of every line about an eviction.
inline constexpr std::string_view kEvictionMessageId = "2b6f0b5a1f6e4c0c9d53a7c4d1a0e8f7";
// MESSAGE_ID of every line about a victim of the kernel's OOM killer.
inline constexpr std::string_view kKernelOomMessageId = "40f53f5fd7674bac9ed9ee4fb3f72f5d";

// Never throws: a line that cannot be written is lost and counted.
void write(Level level, std::string_view message, std::initializer_list<Field> fields = {});

// Formats in one place: spdlog's own templates would be compiled in every file that logs.
void write_formatted(Level level, fmt::string_view format, fmt::format_args args);

template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  write_formatted(Level::debug, format, fmt::make_format_args(args...));
}
template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  write_formatted(Level::info, format, fmt::make_format_args(args...));
}
template <class... Args>
void warning(fmt::format_string<Args...> format, Args&&... args) {
  write_formatted(Level::warn, format, fmt::make_format_args(args...));
}
template <class... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  write_formatted(Level::err, format, fmt::make_format_args(args...));
}

// `level` as in Config.log_level; an unknown name means info.
void set_level(std::string_view level);

// Lines lost since the start, because the queue was full or journald refused them.
std::uint64_t lost();

// Owns the queue and its thread; one per process, created by main.
class Logging {
 public:
  explicit Logging(std::string_view level);
  ~Logging();
  Logging(const Logging&) = delete;
  Logging& operator=(const Logging&) = delete;
};

// Whether stderr is connected to the journal (systemd sets JOURNAL_STREAM to its device:inode).
bool stderr_is_journal();

// Encodes fields in the text of a log line: the message, then "\x1eNAME=value" for each field.
std::string encode(std::string_view message, std::initializer_list<Field> fields);
std::string_view message_of(std::string_view payload);  // the message alone

// For callbacks of C libraries and for threads, where an exception would end the process.

// False: the function threw; the exception was logged.
template <typename Function>
bool log_exceptions(std::string_view doing, Function&& function) noexcept {
  try {
    function();
    return true;
  } catch (const std::exception& thrown) {
    const char* const what = thrown.what();  // fmt 10 takes no temporary
    write_formatted(Level::err, "{}: {}", fmt::make_format_args(doing, what));
  } catch (...) {
    write_formatted(Level::err, "{}: unknown exception", fmt::make_format_args(doing));
  }
  return false;
}

}  // namespace headroom::log
