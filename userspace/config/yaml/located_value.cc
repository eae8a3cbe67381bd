// SPDX-License-Identifier: Apache-2.0
#include "config/yaml/located_value.h"

#include <algorithm>
#include <utility>

namespace headroom::config {

std::optional<LocatedValue> read_located_map(const Section& document, const std::string& file,
                                             std::string_view key) {
  auto words = document.map_of_strings(key);
  if (!words) return std::nullopt;
  LocatedValue value{file, document.line_of(key), std::move(*words), {}};
  const auto map = document.map(key);
  for (const yaml::Entry& entry : map->entries()) {
    const auto same = [&](const LocatedText& word) { return word.key == entry.key; };
    if (std::none_of(value.words.begin(), value.words.end(), same))
      value.unread.push_back(entry.key);
  }
  return value;
}

std::optional<LocatedValue> read_located_list(const Section& document, const std::string& file,
                                              std::string_view key) {
  auto words = document.list_of_strings(key);
  if (!words) return std::nullopt;
  return LocatedValue{file, document.line_of(key), std::move(*words), {}};
}

std::optional<LocatedValue> read_located_string(const Section& document, const std::string& file,
                                                std::string_view key) {
  auto text = document.string(key);
  if (!text) return std::nullopt;
  const int line = document.line_of(key);
  return LocatedValue{file, line, {LocatedText{"", std::move(*text), line}}, {}};
}

std::string last_text(const std::optional<LocatedValue>& value) {
  return value && !value->words.empty() ? value->words.back().text : "";
}

Complaint make_complaint(const std::optional<LocatedValue>& value, std::string_view entry,
                         std::string what) {
  Complaint complaint{"", 0, std::move(what)};
  if (!value) return complaint;
  complaint.file = value->file;
  complaint.line = value->line;
  for (const LocatedText& word : value->words)
    if (!entry.empty() && (word.key == entry || word.text == entry)) complaint.line = word.line;
  return complaint;
}

}  // namespace headroom::config
