// SPDX-License-Identifier: Apache-2.0
// Section: one map of a file, read by key and type; what does not fit becomes a complaint.
//
// Every read gives the value, or nothing: because the key is absent (or null, which to Kubernetes
// is the same), or because it was wrong and has been complained of. The caller keeps its default
// either way and reads on, so that one run finds every mistake.
#pragma once

#include "config/yaml/yaml.h"

#include <headroom/quantity.h>
#include <headroom/units.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headroom::config {

// The known word that a mistyped one was probably meant to be.

// Absent when nothing is near enough to be worth saying.
std::optional<std::string_view> closest_match(std::string_view word,
                                              std::span<const std::string_view> known);

// Whether `word` is `known` with at most two letters wrong, or with other capitals.
bool is_misspelling(std::string_view word, std::string_view known);

// ", did you mean evictionHard?" or "".
std::string did_you_mean(std::string_view word, std::span<const std::string_view> known);

// A word of a list or of a map, and where it stands.
struct LocatedText {
  std::string key;  // of a map
  std::string text;
  int line = 0;
};

// The range of the API's integers that are not 64 bits wide.
using Int32 = std::numeric_limits<std::int32_t>;

template <class T>
struct Choice {
  std::string_view word;
  T value;
};

class Section {
 public:
  // `path` is how messages name this map: "headroom", "spec.containers[0]", "" for the document.
  // The map, the file's name and the complaints outlive the section.
  Section(const yaml::Node& map, std::string path, const std::string& file,
          Diagnostics& diagnostics)
      : map_(&map), path_(std::move(path)), file_(&file), complaints_(&diagnostics) {}

  int line() const { return map_->line; }
  int line_of(std::string_view key) const;  // the section's own where the key is absent
  std::string path_of(std::string_view key) const;
  bool has(std::string_view key) const { return yaml::find(*map_, key) != nullptr; }
  std::span<const yaml::Entry> entries() const { return map_->entries; }

  // "path.key: what", at the key's line.
  void add_error(std::string_view key, std::string_view what) const;
  void add_error(const yaml::Entry& entry, std::string_view what) const;  // one of entries()
  // "what", at that line.
  void add_error_at(int line, std::string what) const;
  // Every other key is unknown, with the nearest known one.
  void reject_unknown_keys(std::span<const std::string_view> known) const;
  // Of a map that a kubelet reads too: a key of another version of the kubelet is a warning,
  // because the kubelet starts with it. It is an error if it is probably a misspelling of one of
  // `used`, which would then have no effect.
  void warn_of_unknown_keys(std::span<const std::string_view> known,
                            std::span<const std::string_view> used, Diagnostics& warnings) const;

  std::optional<std::string> string(std::string_view key) const;
  // "" and an error where it is absent or empty.
  std::string required_string(std::string_view key) const;
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::int64_t> integer(
      std::string_view key, std::int64_t least = std::numeric_limits<std::int64_t>::min(),
      std::int64_t most = std::numeric_limits<std::int64_t>::max()) const;
  std::optional<double> number(std::string_view key) const;
  std::optional<Duration> duration(std::string_view key) const;  // of Go: "1m30s"
  std::optional<Quantity> quantity(std::string_view key) const;  // a string or a number
  // Of one of entries(): without a search for its key.
  std::optional<Quantity> quantity(const yaml::Entry& entry) const;
  std::optional<std::vector<LocatedText>> list_of_strings(std::string_view key) const;
  std::optional<std::vector<LocatedText>> map_of_strings(std::string_view key) const;
  std::optional<Section> map(std::string_view key) const;
  // Items that are no maps are complained of and left out.
  std::optional<std::vector<Section>> list_of_maps(std::string_view key) const;

  // One word of few: "expected observe or enforce, found ...".
  template <class T>
  std::optional<T> choice(std::string_view key, std::span<const Choice<T>> choices) const {
    const auto text = string(key);
    if (!text) return std::nullopt;
    std::string expected;
    for (const auto& [word, value] : choices) {
      if (word == *text) return value;
      expected += (expected.empty() ? "" : word == choices.back().word ? " or " : ", ");
      expected += word;
    }
    add_error(key, "expected " + expected + ", found \"" + *text + "\"");
    return std::nullopt;
  }

 private:
  std::optional<std::string> string_in(const yaml::Node& node, const std::string& name,
                                       int line) const;
  void expected(const std::string& name, int line, std::string_view wanted,
                const yaml::Node& found) const;

  const yaml::Node* map_;
  std::string path_;
  const std::string* file_;
  Diagnostics* complaints_;
};

}  // namespace headroom::config
