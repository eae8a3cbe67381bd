// SPDX-License-Identifier: Apache-2.0
#include "observe/cgroup/cgroup_settings_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <string_view>

namespace headroom::observe {
namespace {

// The kernel itself changes *.events, and the start of a process changes cgroup.procs.
bool is_setting(std::string_view file) {
  constexpr std::array<std::string_view, 7> kEnds{".weight", ".max",  ".min",  ".low",
                                                  ".high",   ".cpus", ".group"};
  for (const std::string_view end : kEnds)
    if (file.ends_with(end)) return true;
  return false;
}

}  // namespace

CgroupSettingsWatch::CgroupSettingsWatch(std::filesystem::path root)
    : root_(std::move(root)), inotify_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {}

void CgroupSettingsWatch::watch(const std::string& path) {
  if (!inotify_ || watched_.contains(path)) return;
  const std::filesystem::path directory = root_ / path.substr(1);
  const int watch = ::inotify_add_watch(inotify_.get(), directory.c_str(),
                                        IN_MODIFY | IN_DELETE_SELF | IN_ONLYDIR);
  if (watch >= 0) watched_[path] = watch;
}

bool CgroupSettingsWatch::drain() {
  alignas(inotify_event) std::array<char, 4096> buffer{};
  bool news = false;
  for (;;) {
    const ssize_t size = ::read(inotify_.get(), buffer.data(), buffer.size());
    if (size <= 0) return news;
    for (const char* at = buffer.data(); at < buffer.data() + size;) {
      const auto* event = reinterpret_cast<const inotify_event*>(at);
      const bool gone = event->mask & (IN_IGNORED | IN_Q_OVERFLOW);
      if (gone) std::erase_if(watched_, [&](const auto& w) { return w.second == event->wd; });
      news |= gone || (event->len > 0 && is_setting(event->name));
      at += sizeof(inotify_event) + event->len;
    }
  }
}

}  // namespace headroom::observe
