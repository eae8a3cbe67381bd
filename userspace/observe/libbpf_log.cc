// SPDX-License-Identifier: Apache-2.0
#include "observe/libbpf_log.h"

#include <bpf/libbpf.h>

#include <cstdarg>
#include <cstdio>
#include <utility>

namespace headroom::observe {
namespace {

// libbpf has one printer for the process; routing by thread keeps two loaders apart.
thread_local LibbpfLog* current = nullptr;

int print(libbpf_print_level level, const char* format, va_list arguments) {
  if (!current || level == LIBBPF_DEBUG) return 0;
  char text[8192];  // a verifier log comes as one message; its head says enough
  int length = std::vsnprintf(text, sizeof text, format, arguments);
  if (length <= 0) return 0;
  std::string_view line(text, std::min(static_cast<std::size_t>(length), sizeof text - 1));
  while (!line.empty() && line.back() == '\n')
    line.remove_suffix(1);
  current->take(level == LIBBPF_WARN, line);
  return length;
}

}  // namespace

LibbpfLog::LibbpfLog(LogLine line) : line_(std::move(line)), outer_(std::exchange(current, this)) {
  libbpf_set_print(print);
}

LibbpfLog::~LibbpfLog() {
  current = outer_;
}

void LibbpfLog::take(bool warning, std::string_view text) {
  if (warning && !text.starts_with("libbpf: failed to load object")) {
    std::string_view bare = text;
    if (bare.starts_with("libbpf: ")) bare.remove_prefix(8);
    last_warning_.assign(bare);
  }
  if (line_) line_(text);
}

}  // namespace headroom::observe
