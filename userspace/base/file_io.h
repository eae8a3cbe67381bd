// SPDX-License-Identifier: Apache-2.0
// Fd, a descriptor that closes itself, and whole writes to descriptors and files.
#pragma once

#include <headroom/result.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

namespace headroom {

// Fd: an owned file descriptor.

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

// write_all(): all of a text, however many writes that takes.

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

// write_file_value(): writes a value to an existing file, such as a cgroup's, in one write.

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
