// SPDX-License-Identifier: Apache-2.0
// Configuration files for tests: written, loaded, and what was said of them.
#pragma once

#include "config/load.h"
#include "config/temp_dir.h"

#include <string>
#include <vector>

namespace headroom::test {

using Loaded = tl::expected<config::Config, config::Complaints>;

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

// Each "line: what", without the file's name; empty when nothing was wrong.
inline std::vector<std::string> said(const Loaded& config) {
  std::vector<std::string> lines;
  if (config) return lines;
  for (const config::Complaint& complaint : config.error())
    lines.push_back(std::to_string(complaint.line) + ": " + complaint.what);
  return lines;
}

}  // namespace headroom::test
