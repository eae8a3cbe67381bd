// SPDX-License-Identifier: Apache-2.0
// MountOf: how the filesystem that a path lies on is mounted.
#pragma once

#include <headroom/result.h>

#include <filesystem>

namespace headroom::observe {

// Whether it counts by project; a path that is not there yet counts as its nearest parent.
Result<bool> has_project_quota(const std::filesystem::path& path,
                               const std::filesystem::path& mountinfo = "/proc/self/mountinfo");

}  // namespace headroom::observe
