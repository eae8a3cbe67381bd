// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

#include <cstddef>

namespace headroom {
namespace {

// Characters that reverse or break the line they are in: U+061C, U+200E, U+200F, U+2028 to U+202E,
// U+2066 to U+2069.
bool is_direction_or_line_mark(std::string_view character) {
  if (character == "\xd8\x9c") return true;
  if (character.size() != 3 || character[0] != '\xe2') return false;
  const auto second = static_cast<unsigned char>(character[1]);
  const auto third = static_cast<unsigned char>(character[2]);
  if (second == 0x80) return third == 0x8e || third == 0x8f || (third >= 0xa8 && third <= 0xae);
  return second == 0x81 && third >= 0xa6 && third <= 0xa9;
}

// The length of the valid UTF-8 sequence at the start; 0: there is none, or a control character or
// mark.
std::size_t printable_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return first < 0x20 || first == 0x7f ? 0 : 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  const std::size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const unsigned char second = byte(1);
  if (first == 0xc2 && second < 0xa0) return 0;   // U+0080 to U+009F: control characters
  if (first == 0xe0 && second < 0xa0) return 0;   // longer than necessary
  if (first == 0xed && second >= 0xa0) return 0;  // surrogates
  if (first == 0xf0 && second < 0x90) return 0;   // longer than necessary
  if (first == 0xf4 && second >= 0x90) return 0;  // above U+10FFFF
  return is_direction_or_line_mark(text.substr(0, length)) ? 0 : length;
}

}  // namespace

void append_printable(std::string& to, std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = printable_length(text);
    if (length == 0)
      to += '?';
    else
      to += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
}

std::string printable(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  append_printable(clean, text);
  return clean;
}

}  // namespace headroom
