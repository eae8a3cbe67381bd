// SPDX-License-Identifier: Apache-2.0
// yaml::Node: a YAML or JSON document as a plain tree in which everything knows its line.
//
// yaml-cpp throws, hides duplicate keys behind the first of them and forgets the line of a null;
// its event stream does none of these. It is read once, here, and no exception of it gets out.
#pragma once

#include <headroom/result.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::config {

// Diagnostic: one error in the input, where it is, and what would be right.
//
// Readers collect diagnostics and read on, so that one run shows every error.

struct Diagnostic {
  std::string file;  // or "--eviction-hard" for a flag
  int line = 0;      // 1-based; 0: no line
  std::string what;

  friend bool operator==(const Diagnostic&, const Diagnostic&) = default;
};
using Diagnostics = std::vector<Diagnostic>;

// "file:line: what" (or "what" alone where neither is known).
std::string to_string(const Diagnostic& diagnostic);

}  // namespace headroom::config

namespace headroom::config {

// read_file(): the text of a file a person wrote.

inline constexpr std::size_t kMaxFileBytes = 16u << 20;

// Regular files only, and none above `max_bytes`, whole MiB: this runs with memory locked, and a
// FIFO in the manifest directory must not stop the daemon. The error says why, not which ("No such
// file or directory"): the complaint it becomes names the file.
Result<std::string> read_file(const std::filesystem::path& path,
                              std::size_t max_bytes = kMaxFileBytes);

}  // namespace headroom::config

namespace headroom::config::yaml {

struct Entry;

struct Node {
  enum class Kind : std::uint8_t { kNull, kScalar, kSequence, kMap };
  Kind kind = Kind::kNull;
  int line = 0;                // 1-based
  bool plain = false;          // a scalar without quotes: 5 is a number, "5" is not
  std::string text;            // of a scalar
  std::vector<Node> items;     // of a sequence
  std::vector<Entry> entries;  // of a map, in the file's order

  bool is_null() const { return kind == Kind::kNull; }
  bool is_map() const { return kind == Kind::kMap; }
  bool is_sequence() const { return kind == Kind::kSequence; }
  bool is_scalar() const { return kind == Kind::kScalar; }
};

struct Entry {
  std::string key;
  int line = 0;  // of the key
  Node value;
};

// The entry, or null where it is absent or says null: to Kubernetes these are one.
const Entry* find(const Node& map, std::string_view key);

// What a text may grow to in memory: an alias is a copy of what it names, so ten lines of aliases
// to aliases could ask for a billion nodes.
struct ParseLimits {
  std::size_t nodes = 200'000;  // keys and values of all documents, and of all copies: about 30 MiB
  std::size_t levels = 100;     // of maps and lists in each other
  std::size_t copied_text = 1u << 20;  // bytes of text that anchors and aliases copy
};

// Every document of the text, in time linear in its length (but for a logarithm). A syntax error or
// an exceeded limit is one complaint and ends the reading; a duplicate key is a complaint and the
// first of them stays.
std::vector<Node> parse(const std::string& text, const std::string& file, Diagnostics& diagnostics,
                        const ParseLimits& limits = {});

// What YAML 1.1 (as Kubernetes reads it) takes a plain scalar for.
bool is_number(const Node& node);
bool is_boolean(const Node& node);

// "the number 5", "the boolean yes", "the string "x"", "a list", "a map", "nothing".
std::string describe(const Node& node);

}  // namespace headroom::config::yaml
