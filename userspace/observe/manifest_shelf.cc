// SPDX-License-Identifier: Apache-2.0
#include "observe/manifest_shelf.h"

#include <sys/stat.h>

#include <utility>

namespace headroom::observe {

namespace fs = std::filesystem;

ManifestShelf::Stamp ManifestShelf::stamp_of(const fs::path& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return {};
  return {info.st_dev, info.st_ino, static_cast<std::uint64_t>(info.st_size),
          info.st_ctim.tv_sec * 1'000'000'000 + info.st_ctim.tv_nsec};
}

ManifestShelf::Look ManifestShelf::look(std::span<const ManifestPlace> places, std::size_t most) {
  Look look;
  Sheet trouble;
  std::vector<const Sheet*> sheets;
  for (auto& [path, kept] : kept_)
    kept.seen = false;
  for (const ManifestPlace& place : places)
    for (const fs::path& file : manifest_files(place.directory, trouble.complaints)) {
      // Before it is read: one that is written while we do is read again.
      const Stamp stamp = stamp_of(file);
      const auto at = kept_.find(file.native());
      const bool fresh = at == kept_.end();
      if (fresh || at->second.stamp != stamp) {
        if (most == 0) {
          look.whole = false;
          if (fresh) continue;
        } else {
          --most;
          kept_[file.native()] = {stamp, read_sheet(file, place.options), false};
        }
      }
      Kept& kept = kept_.at(file.native());
      kept.seen = true;
      sheets.push_back(&kept.sheet);
    }
  sheets.push_back(&trouble);
  look.manifests = together(std::move(sheets));
  std::erase_if(kept_, [](const auto& each) { return !each.second.seen; });
  return look;
}

}  // namespace headroom::observe
