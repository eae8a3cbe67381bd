// SPDX-License-Identifier: Apache-2.0
// The configuration file and its drop-ins as one document, in which every line still knows
// its file.
//
// Drop-ins are merged as the kubelet merges those of its --config-dir: by name, maps key by key,
// everything else replaced, null taking a key away.
#pragma once

#include "config/yaml/yaml.h"

#include <headroom/result.h>

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::config {

// The configuration keys that were renamed in 0.1: the old names are accepted, with a warning,
// until 0.2.

struct RenamedKey {
  std::string_view map;       // "headroom.disk": where both names stand
  std::string_view old_name;  // "measureEvery"
  std::string_view new_name;  // "measurePeriod"
};
std::span<const RenamedKey> renamed_keys();

// Gives the old keys of one document their new names. Each is a warning that names file and line;
// both names at once are an error.
void rename_old_keys(yaml::Node& document, const std::string& file, Diagnostics& diagnostics,
                     std::vector<std::string>& warnings);

class MergedConfig {
 public:
  // Each file's lines begin at a multiple of this in the merged document, in the order of merging:
  // read_file() takes 16 MiB, so no file has more.
  static constexpr int kLinesPerFile = 1 << 24;
  static constexpr std::size_t kMaxFiles = 120;  // files

  // Adds a file's document, complaints in its lines. An empty one is an error, but for a drop-in.
  void add(const std::string& file, const std::string& text, bool drop_in,
           Diagnostics& diagnostics);

  // A null where nothing was to be read.
  const yaml::Node& document() const { return document_; }
  const std::vector<std::string>& files() const { return files_; }
  // What names a line of the document, named by its file's own.
  Diagnostic with_file_and_line(Diagnostic diagnostic) const;
  std::string location(int line) const;  // "/etc/headroom/headroom.yaml:3"
  // Keys under their old names, one line each.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  std::vector<std::string> files_;
  yaml::Node document_;
  std::vector<std::string> warnings_;
};

// The kubelet's *.conf of a directory and its sub-directories, in the order in which the kubelet
// walks them; with *.yaml, *.yml and *.json among them, except hidden ones.
Result<std::vector<std::filesystem::path>> drop_ins(const std::filesystem::path& directory);

}  // namespace headroom::config
