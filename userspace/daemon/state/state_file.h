// SPDX-License-Identifier: Apache-2.0
// State files: what outlives the daemon, written whole or not at all.
#pragma once

#include <headroom/result.h>

#include <sys/types.h>

#include <filesystem>
#include <string>

namespace headroom::daemon {

// A new file beside it, synced, then renamed over it.
Result<> write_atomically(const std::filesystem::path& path, const std::string& text,
                          mode_t mode = 0600);

// Identifies this boot: times and cgroup ids mean nothing in another.
std::string read_boot_id();

// Out of the way, so that nothing is lost and the next start is not stopped by it again.
Error move_damaged_file(const std::filesystem::path& path, const std::string& why);

}  // namespace headroom::daemon
