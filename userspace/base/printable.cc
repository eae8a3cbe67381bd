// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

#include <cstddef>

namespace headroom {
namespace {

// The length of the valid UTF-8 sequence at the start; 0: there is none, or a control character.
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
  return length;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = printable_length(text);
    if (length == 0)
      clean += '?';
    else
      clean += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return clean;
}

}  // namespace headroom
