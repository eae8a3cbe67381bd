// SPDX-License-Identifier: Apache-2.0
// EnforceLock: at most one headroomd of a node is in mode enforce.
//
// An flock(2) on the root directory of the cgroup v2 mount. Its inode is the same in every mount
// and pid namespace, so that a package's daemon and one in a container exclude each other, which a
// file in /run or an abstract socket would not do. The kernel releases it when the daemon ends.
#pragma once

#include "base/file_io.h"

#include <headroom/result.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

namespace headroom::daemon {

class EnforceLock {
 public:
  // Error: another daemon has the lock; its pid is named if it is visible in this pid namespace.
  static Result<EnforceLock> take(const std::filesystem::path& cgroup_root);
  // The same, if this is the root of the hierarchy. In a cgroup namespace of its own a container
  // sees its own tree alone: its limits would pass for the node's, and most pods would be missing.
  static Result<EnforceLock> take_for_node(const std::filesystem::path& cgroup_root);

 private:
  explicit EnforceLock(Fd directory) : directory_(std::move(directory)) {}

  Fd directory_;
};

// The holder, for a log line: "headroomd with pid 4711". Absent: none, or a process in a pid
// namespace that is not visible from here.
std::optional<std::string> enforce_lock_holder(const std::filesystem::path& cgroup_root);

}  // namespace headroom::daemon
