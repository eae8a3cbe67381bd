// SPDX-License-Identifier: Apache-2.0
// Fd, a descriptor that closes itself; whole reads and writes of files; eventfds and inotify
// watches.
#pragma once

#include <headroom/result.h>

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
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

// write_all(): writes a whole text, with as many write() calls as needed.

// 0, or errno; after an error a part of the text may be written.
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
  // A short write sets no errno.
  if (static_cast<std::size_t>(written) < text.size()) return errno_failure("write " + file, EIO);
  return {};
}

// An eventfd(2) that wakes a thread which polls: open it, signal it from any thread, and read it
// empty in the thread that was woken.

// Returns an empty Fd on failure; errno has the reason.
inline Fd open_event_fd() {
  return Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

// If the counter is full, the write fails, but the descriptor is readable anyway.
inline void signal_event_fd(int fd) {
  (void)::eventfd_write(fd, 1);
}

inline void clear_event_fd(int fd) {
  eventfd_t count = 0;
  (void)::eventfd_read(fd, &count);
}

// inotify(7): a descriptor, and a loop over the events that are pending.

struct InotifyEvent {
  int watch = -1;          // as inotify_add_watch() returned it
  std::uint32_t mask = 0;  // IN_*
  std::string_view name;   // the entry in the watched directory; empty: the watched file itself
};

// Opens a non-blocking descriptor; returns an empty Fd on failure.
inline Fd open_inotify() {
  return Fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
}

// Calls on_event(InotifyEvent) for each pending event, until none is left.
template <typename OnEvent>
void read_inotify(const Fd& inotify, OnEvent on_event) {
  alignas(inotify_event) std::array<char, 16 * 1024> buffer;
  for (ssize_t size = 0; (size = ::read(inotify.get(), buffer.data(), buffer.size())) > 0;) {
    for (ssize_t at = 0; at < size;) {
      inotify_event event;
      std::memcpy(&event, buffer.data() + at, sizeof event);
      const char* name = buffer.data() + at + sizeof event;
      on_event(InotifyEvent{event.wd, event.mask,
                            event.len > 0 ? std::string_view(name) : std::string_view()});
      at += static_cast<ssize_t>(sizeof event + event.len);
    }
  }
}

}  // namespace headroom
