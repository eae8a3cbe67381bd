// SPDX-License-Identifier: Apache-2.0
#include "kube/pod_cgroup_watch.h"

#include "base/file_io.h"

#include <string>

namespace headroom::kube {

namespace fs = std::filesystem;

bool is_pod_cgroup_name(std::string_view name) {
  if (name.starts_with("pod")) return true;
  return name.ends_with(".slice") && name.find("-pod") != std::string_view::npos;
}

PodCgroupWatch::PodCgroupWatch(const fs::path& cgroup_root, std::string_view pods_cgroup)
    : inotify_(open_inotify()) {
  while (pods_cgroup.starts_with("/"))
    pods_cgroup.remove_prefix(1);
  add(cgroup_root / pods_cgroup);
  // The configuration often does not name the kubelet's cgroup driver, so both names are watched.
  if (pods_cgroup == "kubepods.slice") add(cgroup_root / "kubepods");
  if (pods_cgroup == "kubepods") add(cgroup_root / "kubepods.slice");
}

void PodCgroupWatch::add(const fs::path& pods_directory) {
  directories_.push_back(pods_directory);
  for (const char* tier : {"burstable", "besteffort"}) {
    if (pods_directory.extension() == ".slice")
      directories_.push_back(pods_directory /
                             (pods_directory.stem().string() + "-" + tier + ".slice"));
    else
      directories_.push_back(pods_directory / tier);
  }
}

// Every call adds all directories: one that was removed and created again gets a new watch, one
// that is watched keeps its watch.
std::size_t PodCgroupWatch::cover() {
  std::size_t count = 0;
  for (const fs::path& directory : directories_)
    count += ::inotify_add_watch(inotify_.get(), directory.c_str(), IN_CREATE | IN_ONLYDIR) >= 0;
  return count;
}

bool PodCgroupWatch::take() {
  bool made = false;
  read_inotify(inotify_, [&](const InotifyEvent& event) {
    // A queue that overflowed may have lost the event of a new cgroup.
    made = made || (event.mask & IN_Q_OVERFLOW) ||
           ((event.mask & IN_ISDIR) && is_pod_cgroup_name(event.name));
  });
  return made;
}

}  // namespace headroom::kube
