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
  if (::write(fd.get(), text.data(), text.size()) < 0) return errno_failure("write " + file, errno);
  return {};
}

}  // namespace headroom
