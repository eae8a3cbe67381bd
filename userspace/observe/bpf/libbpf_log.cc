// SPDX-License-Identifier: Apache-2.0
#include "observe/bpf/libbpf_log.h"

#include <bpf/libbpf.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

namespace headroom::observe {
namespace {

// libbpf has one printer for the process; routing by thread keeps two loaders apart.
thread_local LibbpfLog* current = nullptr;

int print(libbpf_print_level level, const char* format, va_list arguments) {
  if (!current || level == LIBBPF_DEBUG) return 0;
  va_list again;
  va_copy(again, arguments);
  const int length = std::vsnprintf(nullptr, 0, format, again);
  va_end(again);
  if (length <= 0) return 0;
  // A verifier's whole log comes as one message, and what matters is at its end.
  std::string text(static_cast<std::size_t>(length) + 1, '\0');
  std::vsnprintf(text.data(), text.size(), format, arguments);
  text.pop_back();
  while (!text.empty() && text.back() == '\n')
    text.pop_back();
  current->take(level == LIBBPF_WARN, text);
  return length;
}

// The verifier's last words before its statistics: the reason it refused.
std::string_view verdict_in(std::string_view log) {
  const std::size_t statistics = log.find("\nprocessed ");
  if (statistics == std::string_view::npos) return {};
  log = log.substr(0, statistics);
  return log.substr(log.rfind('\n') + 1);
}

// "prog 'x': failed to load: -22" and the like repeat a code that was already explained.
bool is_generic_failure(std::string_view text) {
  return text.find("failed to load") != std::string_view::npos ||
         text.find("program load failed") != std::string_view::npos;
}

}  // namespace

LibbpfLog::LibbpfLog(LogLine line) : line_(std::move(line)), outer_(std::exchange(current, this)) {
  libbpf_set_print(print);
}

LibbpfLog::~LibbpfLog() {
  current = outer_;
}

std::string LibbpfLog::reason(int code) const {
  std::string text = std::strerror(code);
  if (!last_warning_.empty()) text += " (libbpf: " + last_warning_ + ")";
  return text;
}

void LibbpfLog::take(bool warning, std::string_view text) {
  if (line_) line_(text);
  if (!warning) return;
  if (text.find("BEGIN PROG LOAD LOG") != std::string_view::npos) {
    if (const std::string_view verdict = verdict_in(text); !verdict.empty())
      last_warning_.assign(verdict);
    return;
  }
  if (is_generic_failure(text) && !last_warning_.empty()) return;
  if (text.starts_with("libbpf: ")) text.remove_prefix(8);
  last_warning_.assign(text);
}

}  // namespace headroom::observe
