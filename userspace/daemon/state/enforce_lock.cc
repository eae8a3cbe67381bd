// SPDX-License-Identifier: Apache-2.0
#include "daemon/state/enforce_lock.h"

#include "base/process_stat.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <sstream>

namespace headroom::daemon {

// A line of /proc/locks: "1: FLOCK  ADVISORY  WRITE 4711 00:1c:1 0 EOF". Locks of processes
// outside of this pid namespace are not listed.
std::optional<std::string> enforce_lock_holder(const std::filesystem::path& cgroup_root) {
  struct stat root {};
  if (::stat(cgroup_root.c_str(), &root) != 0) return std::nullopt;
  std::array<char, 64> root_device_inode{};
  std::snprintf(root_device_inode.data(), root_device_inode.size(), "%02x:%02x:%ju",
                major(root.st_dev), minor(root.st_dev), static_cast<std::uintmax_t>(root.st_ino));
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream fields(line);
    std::string number, kind, advisory, access, device_inode;
    pid_t pid = 0;
    if (!(fields >> number >> kind >> advisory >> access >> pid >> device_inode)) continue;
    if (kind != "FLOCK" || access != "WRITE" || pid <= 0) continue;
    if (device_inode != root_device_inode.data()) continue;
    const auto stat = process_stat(pid);
    const std::string name = stat ? stat->comm.data() : "a process";
    return name + " with pid " + std::to_string(pid);
  }
  return std::nullopt;
}

Result<EnforceLock> EnforceLock::take(const std::filesystem::path& cgroup_root) {
  Fd directory(::open(cgroup_root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return errno_failure("open " + cgroup_root.string(), errno);
  if (::flock(directory.get(), LOCK_EX | LOCK_NB) == 0) return EnforceLock(std::move(directory));
  if (errno != EWOULDBLOCK) return errno_failure("lock " + cgroup_root.string(), errno);
  const auto holder = enforce_lock_holder(cgroup_root);
  return failure("another headroomd is in mode enforce on this node: " +
                     holder.value_or("a process of another pid namespace") + " has the lock on " +
                     cgroup_root.string(),
                 EWOULDBLOCK);
}

Result<EnforceLock> EnforceLock::take_for_node(const std::filesystem::path& cgroup_root) {
  // Every cgroup but the root of the hierarchy has this file (CFTYPE_NOT_ON_ROOT).
  if (::access((cgroup_root / "cgroup.type").c_str(), F_OK) == 0)
    return failure("mode enforce needs the host's cgroup tree: " + cgroup_root.string() +
                   " is the root of a cgroup namespace; give the container the host's cgroup "
                   "namespace, or its /sys/fs/cgroup");
  return take(cgroup_root);
}

}  // namespace headroom::daemon
