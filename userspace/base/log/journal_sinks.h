// SPDX-License-Identifier: Apache-2.0
// The two sinks of the log queue: the systemd journal and stderr.
#pragma once

#include <mutex>

#include <spdlog/sinks/base_sink.h>

namespace headroom::log {

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

}  // namespace headroom::log
