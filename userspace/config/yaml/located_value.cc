// SPDX-License-Identifier: Apache-2.0
#include "config/yaml/located_value.h"

#include "judge/eviction/threshold/threshold.h"

#include <algorithm>
#include <string>
#include <utility>

namespace headroom::config {

std::optional<float> read_percentage(const Section& section, std::string_view key,
                                     std::string_view example) {
  const auto text = section.string(key);
  if (!text) return std::nullopt;
  // As percentages are written everywhere else in this file.
  const auto value = parse_threshold_value(Signal::kMemoryAvailable, *text);
  const auto* share = value && *value ? std::get_if<Fraction>(&**value) : nullptr;
  if (share && share->of_one > 0 && share->of_one < 1) return share->of_one;
  section.add_error(key, "expected a percentage between 0% and 100%, such as " +
                             std::string(example) + ", found \"" + *text + "\"");
  return std::nullopt;
}

std::optional<LocatedValue> read_located_map(const Section& document, const std::string& file,
                                             std::string_view key) {
  auto strings = document.map_of_strings(key);
  if (!strings) return std::nullopt;
  LocatedValue value{file, document.line_of(key), std::move(*strings), {}};
  const auto map = document.map(key);
  for (const yaml::Entry& entry : map->entries()) {
    const auto same = [&](const LocatedText& word) { return word.key == entry.key; };
    if (std::none_of(value.strings.begin(), value.strings.end(), same))
      value.unreadable_keys.push_back(entry.key);
  }
  return value;
}

std::optional<LocatedValue> read_located_list(const Section& document, const std::string& file,
                                              std::string_view key) {
  auto strings = document.list_of_strings(key);
  if (!strings) return std::nullopt;
  return LocatedValue{file, document.line_of(key), std::move(*strings), {}};
}

std::optional<LocatedValue> read_located_string(const Section& document, const std::string& file,
                                                std::string_view key) {
  auto text = document.string(key);
  if (!text) return std::nullopt;
  const int line = document.line_of(key);
  return LocatedValue{file, line, {LocatedText{"", std::move(*text), line}}, {}};
}

std::string last_text(const std::optional<LocatedValue>& value) {
  return value && !value->strings.empty() ? value->strings.back().text : "";
}

Diagnostic make_complaint(const std::optional<LocatedValue>& value, std::string_view entry,
                          std::string what) {
  Diagnostic diagnostic{"", 0, std::move(what)};
  if (!value) return diagnostic;
  diagnostic.file = value->file;
  diagnostic.line = value->line;
  for (const LocatedText& word : value->strings)
    if (!entry.empty() && (word.key == entry || word.text == entry)) diagnostic.line = word.line;
  return diagnostic;
}

}  // namespace headroom::config
