// SPDX-License-Identifier: Apache-2.0
// Directories of cgroups, held by descriptor and checked by id: a path can be another cgroup's by
// the time it is used.
#pragma once

#include "base/file_io.h"

#include <headroom/result.h>
#include <headroom/units.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headroom {

// A cgroup as it was seen. Its path may be another one's by now.
struct SeenCgroup {
  std::string path;  // from the cgroup root on
  CgroupId id;       // 0: there was none
  friend bool operator==(const SeenCgroup&, const SeenCgroup&) = default;
};

// The id of the cgroup that has this directory: its inode number (64-bit hosts, Linux 5.5). Absent:
// fstat() failed.
std::optional<CgroupId> cgroup_id_of(int directory);

// The same of a path. Absent: there is no such directory.
std::optional<CgroupId> cgroup_id_at(const std::string& path);

// Without a descriptor if the cgroup was removed, or another one has its path.
Fd open_cgroup(const std::string& path, CgroupId cgroup);
// The same below a cgroup root; the error is ENOENT.
Result<Fd> open_seen_cgroup(const std::string& root, const SeenCgroup& cgroup);

// The path of an open directory (readlink() of /proc/self/fd); of a removed one it ends with
// " (deleted)". Empty: it cannot be read.
std::string path_of_directory(int directory);

// Writes to a file of the directory in one write. 0 or errno.
int write_at(int directory, const char* file, std::string_view text);
// The same; the error names the file and the text.
Result<> write_setting_at(int directory, const std::string& file, std::string_view text);

// The first line of a file of the directory; empty: there is no such file, or it is empty.
std::string line_at(int directory, const char* file);

// What a limit of "max" is read as.
inline constexpr std::int64_t kMaxNumber = INT64_MAX;

// The number at the start of an open file of a cgroup. Absent: the file cannot be read (its cgroup
// was removed), or begins with neither a number nor "max".
std::optional<std::int64_t> number_of(const Fd& file);
// The same of a file of the directory.
std::optional<std::int64_t> number_at(int directory, const char* file);

}  // namespace headroom
