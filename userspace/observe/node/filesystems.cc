// SPDX-License-Identifier: Apache-2.0
#include "observe/node/filesystems.h"

#include <sys/stat.h>

#include <array>

namespace headroom::observe {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kKubeletRoot = "var/lib/kubelet";
constexpr std::array<std::string_view, 4> kRuntimes{
    "var/lib/containerd/io.containerd.snapshotter.v1.overlayfs",
    "var/lib/containerd",
    "var/lib/containers/storage",  // CRI-O and Podman
    "var/lib/docker",
};

bool path_exists(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// What is not there yet will be made on its parent's filesystem.
fs::path nearest_existing(fs::path path) {
  while (!path_exists(path) && path.has_parent_path() && path != path.parent_path())
    path = path.parent_path();
  return path;
}

std::optional<fs::path> runtime_storage(const fs::path& root) {
  for (const std::string_view candidate : kRuntimes)
    if (path_exists(root / candidate)) return root / candidate;
  return std::nullopt;
}

std::optional<dev_t> device_of(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return status.st_dev;
}

// Unknown is not apart: the kubelet's rule.
bool on_different_devices(const std::optional<fs::path>& a, const std::optional<fs::path>& b) {
  if (!a || !b) return false;
  const auto first = device_of(*a);
  const auto second = device_of(*b);
  return first && second && *first != *second;
}

}  // namespace

Filesystems find_filesystems(const FilesystemPaths& configured, const fs::path& root) {
  Filesystems found;
  found.nodefs =
      nearest_existing(configured.nodefs.empty() ? root / kKubeletRoot : configured.nodefs);
  found.imagefs = configured.imagefs.empty() ? runtime_storage(root) : configured.imagefs;
  found.containerfs = configured.containerfs.empty() ? found.imagefs : configured.containerfs;
  found.images.dedicated = on_different_devices(found.imagefs, found.nodefs);
  found.images.split =
      found.images.dedicated && on_different_devices(found.containerfs, found.imagefs);
  found.images.apart = found.images.split && on_different_devices(found.containerfs, found.nodefs);
  return found;
}

}  // namespace headroom::observe
