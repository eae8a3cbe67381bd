// SPDX-License-Identifier: Apache-2.0
// Directories of cgroups, held by descriptor and checked by id: a path can be another cgroup's by
// the time it is used.
#pragma once

#include "base/file_io.h"

#include <headroom/units.h>

#include <optional>
#include <string>
#include <string_view>

namespace headroom {

// The id of the cgroup that has this directory: its inode number (64-bit hosts, Linux 5.5). Absent:
// fstat() failed.
std::optional<CgroupId> cgroup_id_of(int directory);

// The same of a path. Absent: there is no such directory.
std::optional<CgroupId> cgroup_id_at(const std::string& path);

// Without a descriptor if the cgroup was removed, or another one has its path.
Fd open_cgroup(const std::string& path, CgroupId cgroup);

// Writes to a file of the directory in one write. 0 or errno.
int write_at(int directory, const char* file, std::string_view text);

}  // namespace headroom
