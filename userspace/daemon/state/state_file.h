// SPDX-License-Identifier: Apache-2.0
// Helpers of the state files, which a restarted daemon of the same boot reads.
#pragma once

#include <headroom/result.h>

#include <filesystem>
#include <string>

namespace headroom::daemon {

// Identifies this boot: times and cgroup ids mean nothing in another.
std::string read_boot_id();

// Renames it to NAME.damaged, so that it is kept and does not fail the next start again. Returns
// the error to report.
Error move_damaged_file(const std::filesystem::path& path, const std::string& why);

}  // namespace headroom::daemon
