// SPDX-License-Identifier: Apache-2.0
#include "base/atomic_file.h"

#include "base/fd.h"
#include "base/write_all.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <string>

namespace headroom::kube {

Result<> write_atomically(const std::filesystem::path& path, std::string_view text) {
  const std::string fresh = (path.parent_path() / ("." + path.filename().string())).string();
  {
    const Fd fd(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!fd) return errno_failure("create " + fresh, errno);
    int error = ::fchmod(fd.get(), 0644) == 0 ? 0 : errno;
    if (error == 0) error = write_all(fd.get(), text);
    if (error != 0) {
      ::unlink(fresh.c_str());
      return errno_failure("write " + fresh, error);
    }
  }
  if (::rename(fresh.c_str(), path.c_str()) != 0) return errno_failure("rename " + fresh, errno);
  return {};
}

}  // namespace headroom::kube
