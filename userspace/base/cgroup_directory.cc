// SPDX-License-Identifier: Apache-2.0
#include "base/cgroup_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace headroom {

std::optional<CgroupId> cgroup_id_of(int directory) {
  struct stat status {};
  if (::fstat(directory, &status) != 0) return std::nullopt;
  return CgroupId{status.st_ino};
}

std::optional<CgroupId> cgroup_id_at(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return std::nullopt;
  return CgroupId{status.st_ino};
}

Fd open_cgroup(const std::string& path, CgroupId cgroup) {
  Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory && cgroup_id_of(directory.get()) != cgroup) directory.reset();
  return directory;
}

int write_at(int directory, const char* file, std::string_view text) {
  const Fd fd(::openat(directory, file, O_WRONLY | O_CLOEXEC));
  if (!fd) return errno;
  return ::write(fd.get(), text.data(), text.size()) < 0 ? errno : 0;
}

}  // namespace headroom
