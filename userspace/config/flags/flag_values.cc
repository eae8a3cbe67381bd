// SPDX-License-Identifier: Apache-2.0
#include "config/flags/flag_values.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

namespace headroom::config {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// The pieces between commas; empty ones are none, so "" is an empty list.
std::vector<std::string_view> pieces(std::string_view text) {
  std::vector<std::string_view> all;
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), piece.size() + 1));
    if (!trimmed(piece).empty()) all.push_back(trimmed(piece));
  }
  return all;
}

}  // namespace

void apply_map_flag(const CommandLine::FlagValues& values, const std::string& flag,
                    std::string_view form, std::optional<LocatedValue>& value,
                    Diagnostics& diagnostics) {
  if (values.empty()) return;
  const char sign = form[form.find_first_of("<=")];
  value = LocatedValue{flag, 0, {}, {}};
  for (const std::string& text : values) {
    for (const std::string_view pair : pieces(text)) {
      const std::size_t at = pair.find(sign);
      if (at == std::string_view::npos)
        diagnostics.push_back(
            {flag, 0, "\"" + std::string(pair) + "\": expected " + std::string(form)});
      else
        value->strings.push_back({std::string(trimmed(pair.substr(0, at))),
                                  std::string(trimmed(pair.substr(at + 1))), 0});
    }
  }
}

void apply_list_flag(const CommandLine::FlagValues& values, const std::string& flag,
                     std::optional<LocatedValue>& value) {
  if (values.empty()) return;
  value = LocatedValue{flag, 0, {}, {}};
  for (const std::string& text : values)
    for (const std::string_view word : pieces(text))
      value->strings.push_back({"", std::string(word), 0});
}

void apply_string_flag(const CommandLine::FlagValues& values, const std::string& flag,
                       std::optional<LocatedValue>& value) {
  if (!values.empty()) value = LocatedValue{flag, 0, {LocatedText{"", values.back(), 0}}, {}};
}

std::optional<bool> parse_bool_flag(const CommandLine::FlagValues& values, const std::string& flag,
                                    Diagnostics& diagnostics) {
  if (values.empty()) return std::nullopt;
  if (values.back() == "true" || values.back() == "false") return values.back() == "true";
  diagnostics.push_back({flag, 0, "expected true or false, found \"" + values.back() + "\""});
  return std::nullopt;
}

std::optional<std::int64_t> parse_count_flag(const CommandLine::FlagValues& values,
                                             const std::string& flag, Diagnostics& diagnostics) {
  if (values.empty()) return std::nullopt;
  const std::string& text = values.back();
  std::int32_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error == std::errc() && end == text.data() + text.size() && count >= 0) return count;
  diagnostics.push_back(
      {flag, 0, "expected a whole number, not negative (32 bits), found \"" + text + "\""});
  return std::nullopt;
}

void apply_bool_flag(const CommandLine::FlagValues& values, const std::string& flag,
                     std::optional<LocatedValue>& value, Diagnostics& diagnostics) {
  if (parse_bool_flag(values, flag, diagnostics)) apply_string_flag(values, flag, value);
}

}  // namespace headroom::config
