// SPDX-License-Identifier: Apache-2.0
// Tree size: the bytes and inodes below a directory, as du counts them: blocks taken, one
// filesystem, symbolic links not followed, hard links once. By the filesystem's project quota where
// the directory has one, which costs two system calls; else by walking, at a bounded pace.
#pragma once

#include <headroom/disk_usage.h>
#include <headroom/result.h>

#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>

namespace headroom::observe {

// MountOf: how the filesystem that a path lies on is mounted.

// Whether it counts by project; a path that is not there yet counts as its nearest parent.
Result<bool> has_project_quota(const std::filesystem::path& path,
                               const std::filesystem::path& mountinfo = "/proc/self/mountinfo");

// How many entries a second the walk may look at; it sleeps in between.
struct WalkRate {
  std::uint64_t entries_per_second = 50'000;
};

// What came of it: a part that could not be read makes the whole unknown. A path that is not there
// holds nothing: that is known.
Result<FsUsage> directory_size(const std::string& path, WalkRate rate, const std::stop_token& stop);

// By project quota alone; an error where there is none.
Result<FsUsage> directory_quota(int directory);

}  // namespace headroom::observe
