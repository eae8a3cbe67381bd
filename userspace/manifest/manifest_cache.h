// SPDX-License-Identifier: Apache-2.0
// ManifestCache: the manifests of some directories; a file is read again only when it changes.
//
// Parsing YAML takes a good part of a millisecond per pod, and a kubelet's pods change a few at a
// time. A directory or a file that users other than root can write is an error, and is not read.
// What one reading takes is limited: headroomd's memory is locked, and the user of headroom-kube,
// who writes the kubelet's pods, must not be able to exhaust it.
#pragma once

#include "manifest/manifest_reader.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>

namespace headroom::observe {

// Of one directory. Pods in memory take up to ten times as much as their text. What comes later by
// name is not read, and an error says so.
inline constexpr std::size_t kMaxDirectoryBytes = 8u << 20;
inline constexpr std::size_t kMaxDirectoryFiles = 8'192;

struct ManifestSource {
  std::filesystem::path directory;
  ManifestOptions options;
};

class ManifestCache {
 public:
  // Reads the files that changed: *.yaml, *.yml and *.json, by name; hidden and backup files are
  // passed over. A directory that is not there holds no pods. Good pods are kept whatever else is
  // wrong. If two places have the same pod, the first counts.
  Manifests read(std::span<const ManifestSource> places);

 private:
  // Whether a file is still the one that was read: writing a new file creates a new inode.
  struct FileVersion {
    std::uint64_t device = 0, inode = 0, size = 0;
    std::int64_t changed = 0;  // st_ctim, in nanoseconds
    friend bool operator==(const FileVersion&, const FileVersion&) = default;
  };
  struct CachedFile {
    std::optional<FileVersion> version;  // absent: never read
    ParsedFile parsed_file;
    bool seen = false;
  };
  static FileVersion file_version(const std::filesystem::path& file);
  CachedFile& read_if_changed(const std::filesystem::path& file, const ManifestOptions& options);
  // What was read of it that can be used, in order; its errors are added to `errors`.
  void read_directory(const ManifestSource& place, config::Diagnostics& errors,
                      std::vector<const ParsedFile*>& parsed_files);

  std::map<std::string, CachedFile> files_;  // by path
};

// Once.
Manifests read_manifests(const std::filesystem::path& directory, ManifestOptions options = {});

}  // namespace headroom::observe
