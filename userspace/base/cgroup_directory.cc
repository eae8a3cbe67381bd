// SPDX-License-Identifier: Apache-2.0
#include "base/cgroup_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <climits>

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

std::string path_of_directory(int directory) {
  std::array<char, PATH_MAX> link{};
  const std::string name = "/proc/self/fd/" + std::to_string(directory);
  const ssize_t n = ::readlink(name.c_str(), link.data(), link.size());
  return n <= 0 ? "" : std::string(link.data(), static_cast<std::size_t>(n));
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

std::optional<std::int64_t> number_of(const Fd& file) {
  std::array<char, 32> buffer{};
  const ssize_t n = ::pread(file.get(), buffer.data(), buffer.size(), 0);
  const std::string_view text(buffer.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
  const std::string_view line = text.substr(0, text.find('\n'));
  if (line == "max") return kMaxNumber;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

std::optional<std::int64_t> number_at(int directory, const char* file) {
  return number_of(Fd(::openat(directory, file, O_RDONLY | O_CLOEXEC)));
}

}  // namespace headroom
