// SPDX-License-Identifier: Apache-2.0
#include "base/mountinfo.h"

#include <algorithm>
#include <fstream>
#include <iterator>

namespace headroom {
namespace {

// The kernel writes a blank as \040, a tab as \011, a newline as \012, a backslash as \134.
std::string unescaped(std::string_view text) {
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

// Takes the text up to the separator off the front of `rest`.
std::string_view take(std::string_view& rest, char separator) {
  const std::string_view part = rest.substr(0, rest.find(separator));
  rest.remove_prefix(std::min(rest.size(), part.size() + 1));
  return part;
}

}  // namespace

// id parent major:minor root point options [tag]... - type source superblock-options
std::optional<Mount> parse_mount(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty())
    if (const std::string_view word = take(line, ' '); !word.empty()) words.push_back(word);
  const auto dash = std::find(words.begin(), words.end(), "-");
  if (dash - words.begin() < 6 || words.end() - dash < 4) return std::nullopt;
  return Mount{.point = unescaped(words[4]),
               .type = std::string(dash[1]),
               .options = std::string(dash[3]),
               .source = unescaped(dash[2])};
}

std::vector<Mount> parse_mounts(std::string_view text) {
  std::vector<Mount> mounts;
  while (!text.empty())
    if (auto mount = parse_mount(take(text, '\n'))) mounts.push_back(std::move(*mount));
  return mounts;
}

std::vector<Mount> read_mounts(const std::filesystem::path& mountinfo) {
  std::ifstream file(mountinfo);
  return parse_mounts(std::string{std::istreambuf_iterator<char>(file), {}});
}

std::optional<std::string> mount_option(const Mount& mount, std::string_view name) {
  for (std::string_view rest = mount.options; !rest.empty();) {
    std::string_view value = take(rest, ',');
    if (take(value, '=') == name) return unescaped(value);
  }
  return std::nullopt;
}

}  // namespace headroom
