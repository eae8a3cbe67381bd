// SPDX-License-Identifier: Apache-2.0
// Told: one setting as it was told, with its place: a key of the file, or a flag that replaces it.
//
// Settings that can only be judged together are gathered first, then handed to the judge's
// builders; what these object to is led back to the line it came from.
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
  // Keys that are there but could not be read, and have been complained of: nobody is to hear that
  // they are missing as well.
  std::vector<std::string> unreadable_keys;
};

// Absent: not told, or unreadable.
std::optional<LocatedValue> read_located_map(const Section& document, const std::string& file,
                                             std::string_view key);
std::optional<LocatedValue> read_located_list(const Section& document, const std::string& file,
                                              std::string_view key);
std::optional<LocatedValue> read_located_string(const Section& document, const std::string& file,
                                                std::string_view key);

// "": not told.
std::string last_text(const std::optional<LocatedValue>& value);
// Where the entry is, or else the setting; nowhere if it is not told.
Diagnostic make_complaint(const std::optional<LocatedValue>& value, std::string_view entry,
                          std::string what);

}  // namespace headroom::config
