// SPDX-License-Identifier: Apache-2.0
// The words of /proc/PID/mountinfo: a blank is written \040, a tab \011, a newline \012, a
// backslash \134.
#pragma once

#include <string>
#include <string_view>

namespace headroom::observe {

inline std::string unescaped_mount(std::string_view text) {
  std::string out;
  const auto octal = [](char c) { return c >= '0' && c <= '7'; };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && octal(text[i + 1]) && octal(text[i + 2]) &&
        octal(text[i + 3])) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                               (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace headroom::observe
