// SPDX-License-Identifier: Apache-2.0
#include "daemon/state/state_file.h"

#include "base/fd.h"
#include "base/write_all.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

namespace headroom::daemon {

namespace fs = std::filesystem;

Result<> write_atomically(const fs::path& path, const std::string& text, mode_t mode) {
  const fs::path temporary = path.string() + ".new";
  Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
  if (!fd) return errno_failure("create " + temporary.string(), errno);
  if (::fchmod(fd.get(), mode) != 0) return errno_failure("chmod " + temporary.string(), errno);
  if (const int error = write_all(fd.get(), text); error != 0)
    return errno_failure("write " + temporary.string(), error);
  if (::fsync(fd.get()) != 0) return errno_failure("sync " + temporary.string(), errno);
  std::error_code error;
  fs::rename(temporary, path, error);
  if (error) return errno_failure("rename " + temporary.string(), error.value());
  return {};
}

std::string read_boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

Error move_damaged_file(const fs::path& path, const std::string& why) {
  std::error_code ignored;
  fs::rename(path, path.string() + ".damaged", ignored);
  return {"read " + path.string() + ": " + why + "; set aside as .damaged", 0};
}

}  // namespace headroom::daemon
