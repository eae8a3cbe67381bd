// SPDX-License-Identifier: Apache-2.0
// LocatedValue: one setting as it was written, with its place: a key of the file, or a flag that
// replaces it.
//
// Settings that depend on each other are collected first, then passed to the judge's builders; each
// error of these is reported with the line it came from.
#pragma once

#include "config/yaml/complaint.h"
#include "config/yaml/section.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::config {

struct LocatedValue {
  std::string file;  // or "--eviction-hard"
  int line = 0;
  std::vector<LocatedText> strings;  // of a map or list; one without a key: a word
  // Keys that exist but could not be read, and have been reported: they must not be reported as
  // missing as well.
  std::vector<std::string> unreadable_keys;
};

// Absent: unset, or unreadable.
std::optional<LocatedValue> read_located_map(const Section& document, const std::string& file,
                                             std::string_view key);
std::optional<LocatedValue> read_located_list(const Section& document, const std::string& file,
                                              std::string_view key);
std::optional<LocatedValue> read_located_string(const Section& document, const std::string& file,
                                                std::string_view key);

// "": unset.
std::string last_text(const std::optional<LocatedValue>& value);
// Where the entry is, or else the setting; no place if it is unset.
Diagnostic make_complaint(const std::optional<LocatedValue>& value, std::string_view entry,
                          std::string what);

}  // namespace headroom::config
