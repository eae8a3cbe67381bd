// SPDX-License-Identifier: Apache-2.0
// write_file_value(): writes a value to an existing file, such as a cgroup's, in one write.
#pragma once

#include "base/fd.h"

#include <headroom/result.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>

namespace headroom {

inline Result<> write_file_value(const std::string& file, std::string_view text) {
  const Fd fd(::open(file.c_str(), O_WRONLY | O_CLOEXEC | O_TRUNC));
  if (!fd) return errno_failure("open " + file, errno);
  const ssize_t written = ::write(fd.get(), text.data(), text.size());
  if (written < 0) return errno_failure("write " + file, errno);
  // The kernel sets no errno then.
  if (static_cast<std::size_t>(written) < text.size()) return errno_failure("write " + file, EIO);
  return {};
}

}  // namespace headroom
