// SPDX-License-Identifier: Apache-2.0
#include "manifest/manifest_cache.h"

#include <sys/stat.h>

#include <utility>

namespace headroom::observe {

namespace fs = std::filesystem;

ManifestCache::FileVersion ManifestCache::file_version(const fs::path& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return {};
  return {info.st_dev, info.st_ino, static_cast<std::uint64_t>(info.st_size),
          info.st_ctim.tv_sec * 1'000'000'000 + info.st_ctim.tv_nsec};
}

ManifestCache::ReadResult ManifestCache::read(std::span<const ManifestSource> places,
                                              std::size_t most) {
  ReadResult read;
  ParsedFile errors;
  std::vector<const ParsedFile*> parsed_files;
  for (auto& [path, cached] : files_)
    cached.seen = false;
  for (const ManifestSource& place : places)
    for (const fs::path& file : manifest_files(place.directory, errors.diagnostics)) {
      // Before it is read: one that is written while we do is read again.
      const FileVersion version = file_version(file);
      const auto at = files_.find(file.native());
      const bool fresh = at == files_.end();
      if (fresh || at->second.version != version) {
        if (most == 0) {
          read.complete = false;
          if (fresh) continue;
        } else {
          --most;
          files_[file.native()] = {version, parse_manifest_file(file, place.options), false};
        }
      }
      CachedFile& cached = files_.at(file.native());
      cached.seen = true;
      parsed_files.push_back(&cached.parsed_file);
    }
  parsed_files.push_back(&errors);
  read.manifests = merge_files(std::move(parsed_files));
  std::erase_if(files_, [](const auto& each) { return !each.second.seen; });
  return read;
}

}  // namespace headroom::observe
