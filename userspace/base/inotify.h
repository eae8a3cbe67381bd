// SPDX-License-Identifier: Apache-2.0
// inotify(7): a descriptor, and a loop over the events that are pending.
#pragma once

#include "base/file_io.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace headroom {

struct InotifyEvent {
  int watch = -1;          // as inotify_add_watch() returned it
  std::uint32_t mask = 0;  // IN_*
  std::string_view name;   // of the entry in the watched directory; empty: the watched file itself
};

// Non-blocking. No descriptor if the kernel refuses.
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
