// SPDX-License-Identifier: Apache-2.0
// CpusetWatch: readable when cgroups are created or removed where CPUs are assigned, or when a
// cpuset.cpus or cpuset.mems is written.
#pragma once

#include "base/file_io.h"
#include "observe/pod/pod_cgroup_path.h"

#include <filesystem>
#include <set>
#include <string>

namespace headroom::observe {

class CpusetWatch {
 public:
  explicit CpusetWatch(std::filesystem::path cgroup_root);

  // True if something is watched that was not before: what came up in between was missed.
  bool watch_tree(const PodTree& tree);
  int descriptor() const { return inotify_.get(); }
  void drain();

 private:
  bool add(const std::string& path, std::uint32_t events);

  std::filesystem::path cgroup_root_;
  Fd inotify_;
  std::set<int> watched_;  // descriptors of watches; the kernel never gives one out twice
};

}  // namespace headroom::observe
