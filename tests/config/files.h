// SPDX-License-Identifier: Apache-2.0
// Configuration files for tests: written, loaded, and what was said of them.
#pragma once

#include "config/load/load.h"
#include "config/temp_dir.h"

#include <ostream>
#include <string>
#include <vector>

namespace headroom::test {

using Loaded = tl::expected<config::Config, config::Diagnostics>;

inline constexpr const char* kHead =
    "apiVersion: kubelet.config.k8s.io/v1beta1\n"
    "kind: KubeletConfiguration\n";

inline Loaded load_file(const std::filesystem::path& file) {
  config::CommandLine line;
  line.config = {file};
  return config::load(line);
}

// Line 1 of `text` is line 3 of the file.
inline Loaded load_text(const std::string& text) {
  TempDir dir;
  return load_file(dir.write("f", kHead + text));
}

inline Loaded load_with(const std::string& text, const std::vector<std::string>& flags) {
  TempDir dir;
  std::vector<std::string> words{"headroomd", "--config", dir.write("f", kHead + text)};
  words.insert(words.end(), flags.begin(), flags.end());
  std::vector<const char*> argv;
  for (const std::string& word : words)
    argv.push_back(word.c_str());
  return config::parse_command_line(static_cast<int>(argv.size()), argv.data())
      .and_then(config::load);
}

// Each "line: what", without the file's name; empty when nothing was wrong.
inline std::vector<std::string> said(const Loaded& config) {
  std::vector<std::string> lines;
  if (config) return lines;
  for (const config::Diagnostic& diagnostic : config.error())
    lines.push_back(std::to_string(diagnostic.line) + ": " + diagnostic.what);
  return lines;
}

// A row of a table: what of a file is wrong, and what is said of it.
struct BadFile {
  const char* name;
  const char* text;
  std::vector<std::string> diagnostics;
};
inline void PrintTo(const BadFile& bad, std::ostream* out) {
  *out << bad.name;
}

}  // namespace headroom::test
