// SPDX-License-Identifier: Apache-2.0
// ManifestCache: the manifests of some directories; a file is read again only when it changes.
//
// Parsing YAML takes a good part of a millisecond per pod, and a kubelet's pods change a few at a
// time: the loop reads what changed, and never more than a handful of files at a time.
#pragma once

#include "manifest/manifest_reader.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace headroom::observe {

struct ManifestSource {
  std::filesystem::path directory;
  ManifestOptions options;
};

class ManifestCache {
 public:
  struct ReadResult {
    Manifests manifests;
    bool complete = true;  // false: there are files that were not read yet, and count as they were
  };
  // Reads at most `most` changed files. If two places have the same pod, the first counts.
  ReadResult read(std::span<const ManifestSource> places, std::size_t most = SIZE_MAX);

 private:
  // Whether a file is still the one that was read: writing a new file creates a new inode.
  struct FileVersion {
    std::uint64_t device = 0, inode = 0, size = 0;
    std::int64_t changed = 0;  // st_ctim, in nanoseconds
    friend bool operator==(const FileVersion&, const FileVersion&) = default;
  };
  struct CachedFile {
    FileVersion version;
    ParsedFile parsed_file;
    bool seen = false;
  };
  static FileVersion file_version(const std::filesystem::path& file);

  std::map<std::string, CachedFile> files_;  // by path
};

}  // namespace headroom::observe
