// SPDX-License-Identifier: Apache-2.0
// Journal: where log lines go: the systemd journal with fields, or plain stderr; and a guard that
// logs what a callback throws.
//
// Lines leave the calling thread through a bounded queue: a stuck journald costs the oldest lines
// (counted), never the loop's time.
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

// A line that went nowhere.
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

// MESSAGE_ID of everything said about an eviction.
inline constexpr std::string_view kEvictionMessageId = "2b6f0b5a1f6e4c0c9d53a7c4d1a0e8f7";
// And about a process that the kernel's OOM killer chose.
inline constexpr std::string_view kKernelOomMessageId = "40f53f5fd7674bac9ed9ee4fb3f72f5d";

// Never throws: a line that cannot be written is lost and counted.
void write(Level level, std::string_view message, std::initializer_list<Field> fields = {});

// Formatted by what is compiled once: spdlog's own templates would be in every file that speaks.
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

// Config.log_level; anything unknown is info.
void set_level(std::string_view level);

// Lines overrun in the queue or refused by journald, since the start.
std::uint64_t lost();

// Owns the queue and its thread for as long as it lives; one per process, held by main.
class Logging {
 public:
  explicit Logging(std::string_view level);
  ~Logging();
  Logging(const Logging&) = delete;
  Logging& operator=(const Logging&) = delete;
};

// Whether stderr is connected to the journal (systemd sets JOURNAL_STREAM to its device:inode).
bool stderr_is_journal();

// How fields travel through a log library that knows only text: message, then "\x1eNAME=value"s.
// `encode` and `split` are exact inverses.
std::string encode(std::string_view message, std::initializer_list<Field> fields);
std::string_view message_of(std::string_view payload);  // the message alone

// For callbacks of C libraries and for threads: an exception that leaves one ends the process.

// False: it threw, which is logged.
template <typename Function>
bool log_exceptions(std::string_view doing, Function&& function) noexcept {
  try {
    function();
    return true;
  } catch (const std::exception& thrown) {
    write_formatted(Level::err, "{}: {}", fmt::make_format_args(doing, thrown.what()));
  } catch (...) {
    write_formatted(Level::err, "{}: unknown exception", fmt::make_format_args(doing));
  }
  return false;
}

}  // namespace headroom::log
