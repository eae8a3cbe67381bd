// SPDX-License-Identifier: Apache-2.0
#include "config/yaml/read_file.h"

#include "base/fd.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

namespace headroom::config {
namespace {

tl::unexpected<Error> errno_error() {
  return failure(std::strerror(errno), errno);
}

}  // namespace

Result<std::string> read_file(const std::filesystem::path& path, std::size_t max_bytes) {
  // O_NONBLOCK: opening a FIFO would wait for its writer.
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return errno_error();
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return errno_error();
  if (!S_ISREG(status.st_mode)) return failure("not a regular file");

  std::string text;
  std::array<char, 1 << 14> buffer;
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error();
    if (got == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
    if (text.size() > max_bytes)
      return failure("larger than " + std::to_string(max_bytes >> 20) + " MiB");
  }
}

}  // namespace headroom::config
