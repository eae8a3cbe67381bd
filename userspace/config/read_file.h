// SPDX-License-Identifier: Apache-2.0
// read_file(): the text of a file a person wrote.
#pragma once

#include <headroom/result.h>

#include <filesystem>
#include <string>

namespace headroom::config {

// Regular files only, and none above 16 MiB: this runs with memory locked, and a FIFO in the
// manifest directory must not stop the daemon. The error says why, not which ("No such file or
// directory"): the complaint it becomes names the file.
Result<std::string> read_file(const std::filesystem::path& path);

}  // namespace headroom::config
