// SPDX-License-Identifier: Apache-2.0
#include "judge/allocatable/cgroup/unit_escape.h"

#include <charconv>

namespace headroom {
namespace {

bool is_literal(char c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return letter || (c >= '0' && c <= '9') || c == ':' || c == '_' || c == '.';
}

std::string hexadecimal(char c) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  return {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
}

// The byte of a "\xNN" at the front of `text`.
std::optional<char> byte_at_front(std::string_view text) {
  if (text.size() < 4 || text[1] != 'x') return std::nullopt;
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + 4, value, 16);
  if (error != std::errc() || end != text.data() + 4) return std::nullopt;
  return static_cast<char>(value);
}

}  // namespace

std::string escape_unit(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const bool leading_dot = c == '.' && escaped.empty();
    if (c == '/')
      escaped += '-';
    else if (is_literal(c) && !leading_dot)
      escaped += c;
    else
      escaped += hexadecimal(c);
  }
  return escaped;
}

std::optional<std::string> unescape_unit(std::string_view escaped) {
  std::string text;
  while (!escaped.empty()) {
    const char c = escaped.front();
    if (c == '\\') {
      const auto byte = byte_at_front(escaped);
      if (!byte) return std::nullopt;
      text += *byte;
      escaped.remove_prefix(4);
      continue;
    }
    text += c == '-' ? '/' : c;
    escaped.remove_prefix(1);
  }
  return text;
}

}  // namespace headroom
