// SPDX-License-Identifier: Apache-2.0
// Filesystems: which ones the disk signals are about, as named or as found.
#pragma once

#include <headroom/snapshot.h>

#include <filesystem>
#include <optional>

namespace headroom::observe {

// Empty: to be found.
struct FilesystemPaths {
  std::filesystem::path nodefs;
  std::filesystem::path imagefs;
  std::filesystem::path containerfs;
  friend bool operator==(const FilesystemPaths&, const FilesystemPaths&) = default;
};

struct Filesystems {
  std::filesystem::path nodefs;
  std::optional<std::filesystem::path> imagefs;      // absent: no runtime here
  std::optional<std::filesystem::path> containerfs;  // of writable layers
  ImageStorage images;
};

// nodefs holds the kubelet's root directory, or will. Images and layers are where the runtime that
// is installed keeps them: containerd, CRI-O and Podman, Docker. `root` stands for "/" in tests.
Filesystems find_filesystems(const FilesystemPaths& configured,
                             const std::filesystem::path& root = "/");

}  // namespace headroom::observe
