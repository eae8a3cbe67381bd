// SPDX-License-Identifier: Apache-2.0
// LocatedValue: one setting as it was written, with its place: a key of the file, or a flag that
// replaces it.
//
// Settings that depend on each other are collected first, then passed to the judge's builders; each
// error of these is reported with the line it came from.
#pragma once

#include "config/yaml/section.h"
#include "config/yaml/yaml.h"

#include <headroom/units.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::config {

// Scalars of the configuration that have a form: a share ("20%"), an absolute path, a positive
// duration.

// A duration in the configuration that must be more than nothing.

// `duration` stays as it was where the key is not there, or was complained of.
inline void read_positive_duration(const Section& section, std::string_view key,
                                   Duration& duration) {
  const auto read = section.duration(key);
  if (!read) return;
  if (*read > Duration::zero())
    duration = *read;
  else
    section.add_error(key, "must be more than zero");
}

// read_absolute_path(): a path of the configuration. It must not depend on a daemon's working
// directory, so a relative path is an error.

inline void read_absolute_path(const Section& section, std::string_view key,
                               std::filesystem::path& path) {
  const auto text = section.string(key);
  if (!text) return;
  if (text->starts_with("/"))
    path = *text;
  else
    section.add_error(key, "expected an absolute path, found \"" + *text + "\"");
}

// 0.2 for "20%"; absent where it is not there, or was complained of. `example` is for the
// complaint.
std::optional<float> read_percentage(const Section& section, std::string_view key,
                                     std::string_view example);

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
