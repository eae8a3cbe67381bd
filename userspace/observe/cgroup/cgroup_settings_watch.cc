// SPDX-License-Identifier: Apache-2.0
#include "observe/cgroup/cgroup_settings_watch.h"

#include "base/file_io.h"

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
    : root_(std::move(root)), inotify_(open_inotify()) {}

void CgroupSettingsWatch::watch(const std::string& path) {
  if (!inotify_ || watched_.contains(path)) return;
  const std::filesystem::path directory = root_ / path.substr(1);
  const int watch = ::inotify_add_watch(inotify_.get(), directory.c_str(),
                                        IN_MODIFY | IN_DELETE_SELF | IN_ONLYDIR);
  if (watch >= 0) watched_[path] = watch;
}

bool CgroupSettingsWatch::drain() {
  bool changed = false;
  read_inotify(inotify_, [&](const InotifyEvent& event) {
    const bool gone = event.mask & (IN_IGNORED | IN_Q_OVERFLOW);
    if (gone) std::erase_if(watched_, [&](const auto& w) { return w.second == event.watch; });
    changed |= gone || is_setting(event.name);
  });
  return changed;
}

}  // namespace headroom::observe
