// SPDX-License-Identifier: Apache-2.0
#include "base/cgroup_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
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

Result<Fd> open_seen_cgroup(const std::string& root, const SeenCgroup& cgroup) {
  Fd directory = open_cgroup(root + cgroup.path, cgroup.id);
  if (!directory) return failure(cgroup.path + " was removed", ENOENT);
  return directory;
}

int write_at(int directory, const char* file, std::string_view text) {
  const Fd fd(::openat(directory, file, O_WRONLY | O_CLOEXEC));
  if (!fd) return errno;
  return ::write(fd.get(), text.data(), text.size()) < 0 ? errno : 0;
}

Result<> write_setting_at(int directory, const std::string& file, std::string_view text) {
  const int error = write_at(directory, file.c_str(), text);
  while (text.ends_with('\n'))
    text.remove_suffix(1);
  if (error != 0) return errno_failure("write " + std::string(text) + " to " + file, error);
  return {};
}

std::string line_at(int directory, const char* file) {
  const Fd fd(::openat(directory, file, O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> text{};
  const ssize_t n = fd ? ::read(fd.get(), text.data(), text.size()) : -1;
  const std::string_view all(text.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
  return std::string(all.substr(0, all.find('\n')));
}

}  // namespace headroom
