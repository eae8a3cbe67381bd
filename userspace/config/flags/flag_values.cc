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

void apply_map_flag(const CommandLine::Uses& uses, const std::string& flag, std::string_view form,
                    std::optional<LocatedValue>& value, Complaints& complaints) {
  if (uses.empty()) return;
  const char sign = form[form.find_first_of("<=")];
  value = LocatedValue{flag, 0, {}, {}};
  for (const std::string& use : uses) {
    for (const std::string_view pair : pieces(use)) {
      const std::size_t at = pair.find(sign);
      if (at == std::string_view::npos)
        complaints.push_back(
            {flag, 0, "\"" + std::string(pair) + "\": expected " + std::string(form)});
      else
        value->words.push_back({std::string(trimmed(pair.substr(0, at))),
                                std::string(trimmed(pair.substr(at + 1))), 0});
    }
  }
}

void apply_list_flag(const CommandLine::Uses& uses, const std::string& flag,
                     std::optional<LocatedValue>& value) {
  if (uses.empty()) return;
  value = LocatedValue{flag, 0, {}, {}};
  for (const std::string& use : uses)
    for (const std::string_view word : pieces(use))
      value->words.push_back({"", std::string(word), 0});
}

void apply_string_flag(const CommandLine::Uses& uses, const std::string& flag,
                       std::optional<LocatedValue>& value) {
  if (!uses.empty()) value = LocatedValue{flag, 0, {LocatedText{"", uses.back(), 0}}, {}};
}

std::optional<bool> parse_bool_flag(const CommandLine::Uses& uses, const std::string& flag,
                                    Complaints& complaints) {
  if (uses.empty()) return std::nullopt;
  if (uses.back() == "true" || uses.back() == "false") return uses.back() == "true";
  complaints.push_back({flag, 0, "expected true or false, found \"" + uses.back() + "\""});
  return std::nullopt;
}

std::optional<std::int64_t> parse_count_flag(const CommandLine::Uses& uses, const std::string& flag,
                                             Complaints& complaints) {
  if (uses.empty()) return std::nullopt;
  const std::string& text = uses.back();
  std::int32_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error == std::errc() && end == text.data() + text.size() && count >= 0) return count;
  complaints.push_back(
      {flag, 0, "expected a whole number, not negative (32 bits), found \"" + text + "\""});
  return std::nullopt;
}

void apply_bool_flag(const CommandLine::Uses& uses, const std::string& flag,
                     std::optional<LocatedValue>& value, Complaints& complaints) {
  if (parse_bool_flag(uses, flag, complaints)) apply_string_flag(uses, flag, value);
}

}  // namespace headroom::config
