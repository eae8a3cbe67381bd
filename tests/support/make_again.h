// SPDX-License-Identifier: Apache-2.0
// make_again(): another directory with the same files at the same path, as of a cgroup that was
// removed and made again.
#pragma once

#include <filesystem>

namespace headroom::test {

// The new one is made before the old one is removed: it has another inode number on every file
// system.
inline void make_again(const std::filesystem::path& directory) {
  const std::filesystem::path copy = directory.native() + ".again";
  std::filesystem::copy(directory, copy, std::filesystem::copy_options::recursive);
  std::filesystem::remove_all(directory);
  std::filesystem::rename(copy, directory);
}

}  // namespace headroom::test
