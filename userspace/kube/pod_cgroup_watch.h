// SPDX-License-Identifier: Apache-2.0
// PodCgroupWatch: reports that a pod-level cgroup was created, by inotify on the directories in
// which the kubelet creates them. It does not say which pod: the kubelet is asked for all pods.
#pragma once

#include "base/file_io.h"

#include <cstddef>
#include <filesystem>
#include <string_view>
#include <vector>

namespace headroom::kube {

class PodCgroupWatch {
 public:
  // `cgroup_root`: "/sys/fs/cgroup"; `pods_cgroup`: a path below it, from the configuration.
  PodCgroupWatch(const std::filesystem::path& cgroup_root, std::string_view pods_cgroup);

  // Readable when there are events; -1 if the kernel returned no inotify descriptor.
  int descriptor() const { return inotify_.get(); }
  // Watches the directories that exist. Returns how many of them are watched.
  std::size_t cover();
  // Reads all pending events. True if a pod-level cgroup was created.
  bool take();

 private:
  void add(const std::filesystem::path& pods_directory);

  Fd inotify_;
  std::vector<std::filesystem::path> directories_;
};

// "kubepods-burstable-pod<uid>.slice" and "pod<uid>", but not "kubepods-burstable.slice".
bool is_pod_cgroup_name(std::string_view name);

}  // namespace headroom::kube
