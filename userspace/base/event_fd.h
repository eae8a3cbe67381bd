// SPDX-License-Identifier: Apache-2.0
// An eventfd(2) that wakes a thread which polls: open it, signal it from any thread, and read it
// empty in the thread that was woken.
#pragma once

#include "base/file_io.h"

#include <sys/eventfd.h>

namespace headroom {

// No descriptor if the kernel refuses; errno says why.
inline Fd open_event_fd() {
  return Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

// A full counter keeps the descriptor readable, so a write that fails for it loses nothing.
inline void signal_event_fd(int fd) {
  (void)::eventfd_write(fd, 1);
}

inline void clear_event_fd(int fd) {
  eventfd_t count = 0;
  (void)::eventfd_read(fd, &count);
}

}  // namespace headroom
