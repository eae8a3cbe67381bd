// SPDX-License-Identifier: Apache-2.0
// write_all(): all of a text, however many writes that takes.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace headroom {

// 0, or errno: then some of it may be written.
inline int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    if (written == 0) return EIO;  // no progress and no errno
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace headroom
