// SPDX-License-Identifier: Apache-2.0
#include "kube/api/file_waiter.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace headroom::kube {

FileWaiter::FileWaiter(const std::stop_token& stop)
    : events_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)),
      ended_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      on_stop_(stop, [this] {
        const std::uint64_t one = 1;
        // If the counter is full, the reader is woken as well.
        [[maybe_unused]] const ssize_t written = ::write(ended_.get(), &one, sizeof one);
      }) {}

void FileWaiter::watch(const std::filesystem::path& file) {
  const auto directory = file.parent_path();
  const auto known = watches_.find(directory);
  if (known != watches_.end() && known->second >= 0) return;
  constexpr std::uint32_t kChanges =
      IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
  watches_[directory] = ::inotify_add_watch(events_.get(), directory.c_str(), kChanges);
}

void FileWaiter::wait(Duration longest) {
  const bool poll_needed = std::any_of(watches_.begin(), watches_.end(),
                                       [](const auto& watch) { return watch.second < 0; });
  if (poll_needed) longest = std::min(longest, kPollPeriod);
  const auto whole = std::chrono::ceil<std::chrono::milliseconds>(longest).count();
  std::array<pollfd, 2> waited{pollfd{events_.get(), POLLIN, 0}, pollfd{ended_.get(), POLLIN, 0}};
  const int timeout = static_cast<int>(std::clamp<std::int64_t>(whole, 0, 60'000));
  if (::poll(waited.data(), waited.size(), timeout) > 0 && waited[0].revents) drain();
}

// Marks the watches of removed or renamed directories as lost, so that watch() adds them again.
void FileWaiter::drain() {
  alignas(inotify_event) std::array<char, 4096> buffer;
  for (ssize_t got; (got = ::read(events_.get(), buffer.data(), buffer.size())) > 0;) {
    for (ssize_t at = 0; at < got;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
      at += static_cast<ssize_t>(sizeof *event + event->len);
      if (!(event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED))) continue;
      for (auto& [directory, watch] : watches_)
        if (watch == event->wd) watch = -1;
    }
  }
}

}  // namespace headroom::kube
