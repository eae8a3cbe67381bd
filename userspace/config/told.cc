// SPDX-License-Identifier: Apache-2.0
#include "config/told.h"

#include <algorithm>
#include <utility>

namespace headroom::config {

std::optional<Told> told_map(const Section& document, const std::string& file,
                             std::string_view key) {
  auto words = document.map_of_strings(key);
  if (!words) return std::nullopt;
  Told told{file, document.line_of(key), std::move(*words), {}};
  const auto map = document.map(key);
  for (const yaml::Entry& entry : map->entries()) {
    const auto same = [&](const Word& word) { return word.key == entry.key; };
    if (std::none_of(told.words.begin(), told.words.end(), same)) told.unread.push_back(entry.key);
  }
  return told;
}

std::optional<Told> told_list(const Section& document, const std::string& file,
                              std::string_view key) {
  auto words = document.list_of_strings(key);
  if (!words) return std::nullopt;
  return Told{file, document.line_of(key), std::move(*words), {}};
}

std::optional<Told> told_word(const Section& document, const std::string& file,
                              std::string_view key) {
  auto text = document.string(key);
  if (!text) return std::nullopt;
  const int line = document.line_of(key);
  return Told{file, line, {Word{"", std::move(*text), line}}, {}};
}

std::string word_of(const std::optional<Told>& told) {
  return told && !told->words.empty() ? told->words.back().text : "";
}

Complaint complaint_at(const std::optional<Told>& told, std::string_view entry, std::string what) {
  Complaint complaint{"", 0, std::move(what)};
  if (!told) return complaint;
  complaint.file = told->file;
  complaint.line = told->line;
  for (const Word& word : told->words)
    if (!entry.empty() && (word.key == entry || word.text == entry)) complaint.line = word.line;
  return complaint;
}

}  // namespace headroom::config
