// SPDX-License-Identifier: Apache-2.0
// PodCgroupWatch: reports that a pod-level cgroup was created, by inotify on the directories in
// which the kubelet creates them. It names no pod: the kubelet is asked for all of them.
#pragma once

#include "base/fd.h"

#include <cstddef>
#include <filesystem>
#include <string_view>
#include <vector>

namespace headroom::kube {

class PodCgroupWatch {
 public:
  // `cgroup_root`: "/sys/fs/cgroup"; `pods_cgroup` below it, as the configuration has it.
  PodCgroupWatch(const std::filesystem::path& cgroup_root, std::string_view pods_cgroup);

  // Readable when something happened; -1: the kernel gives no inotify.
  int descriptor() const { return inotify_.get(); }
  // Watches what is there by now and is not watched yet. The number of directories watched.
  std::size_t cover();
  // Takes all events there are: true if a pod-level cgroup was made.
  bool take();

 private:
  void add(const std::filesystem::path& pods_directory);

  Fd inotify_;
  std::vector<std::filesystem::path> directories_;
};

// "kubepods-burstable-pod<uid>.slice" and "pod<uid>", but not "kubepods-burstable.slice".
bool is_pod_cgroup_name(std::string_view name);

}  // namespace headroom::kube
