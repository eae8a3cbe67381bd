// SPDX-License-Identifier: Apache-2.0
#include "kube/api/file_waiter.h"

#include "base/event_fd.h"
#include "base/inotify.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace headroom::kube {

FileWaiter::FileWaiter(const std::stop_token& stop)
    : events_(open_inotify()),
      ended_(open_event_fd()),
      on_stop_(stop, [this] { signal_event_fd(ended_.get()); }) {}

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
  read_inotify(events_, [this](const InotifyEvent& event) {
    if (!(event.mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED))) return;
    for (auto& [directory, watch] : watches_)
      if (watch == event.watch) watch = -1;
  });
}

}  // namespace headroom::kube
