// SPDX-License-Identifier: Apache-2.0
// read_file(): the text of a file a person wrote.
#pragma once

#include <headroom/result.h>

#include <cstddef>
#include <filesystem>
#include <string>

namespace headroom::config {

inline constexpr std::size_t kMaxFileBytes = 16u << 20;

// Regular files only, and none above `max_bytes`, whole MiB: this runs with memory locked, and a
// FIFO in the manifest directory must not stop the daemon. The error says why, not which ("No such
// file or directory"): the complaint it becomes names the file.
Result<std::string> read_file(const std::filesystem::path& path,
                              std::size_t max_bytes = kMaxFileBytes);

}  // namespace headroom::config
