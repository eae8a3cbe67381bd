// SPDX-License-Identifier: Apache-2.0
#include "observe/pod/cpuset_watch.h"

#include "base/file_io.h"

#include <cstdint>
#include <utility>

namespace headroom::observe {
namespace {

constexpr std::uint32_t kChildren = IN_CREATE | IN_DELETE | IN_ONLYDIR;

}  // namespace

CpusetWatch::CpusetWatch(std::filesystem::path cgroup_root)
    : cgroup_root_(std::move(cgroup_root)), inotify_(open_inotify()) {}

// The same watch again is the same descriptor.
bool CpusetWatch::add(const std::string& path, std::uint32_t events) {
  const int watch =
      ::inotify_add_watch(inotify_.get(), (cgroup_root_.native() + path).c_str(), events);
  return watch >= 0 && watched_.insert(watch).second;
}

bool CpusetWatch::watch_tree(const PodTree& tree) {
  bool more = add("", kChildren);  // for the pods' cgroup to appear
  for (const std::string& root : tree.roots)
    more |= add(root, kChildren);
  for (const std::string& path : tree.sharing) {
    more |= add(path, kChildren);  // pods that share: what they request counts
    more |= add(path + "/cpuset.cpus", IN_MODIFY);
  }
  for (const PodCgroup& pod : tree.pods) {
    more |= add(pod.path, kChildren);
    more |= add(pod.path + "/cgroup.events", IN_MODIFY);  // it fills, or empties
    for (const char* const file : {"/cpuset.cpus", "/cpuset.mems"}) {
      more |= add(pod.path + file, IN_MODIFY);
      for (const ContainerCgroup& container : pod.containers)
        more |= add(container.path + file, IN_MODIFY);
    }
  }
  return more;
}

void CpusetWatch::drain() {
  read_inotify(inotify_, [this](const InotifyEvent& event) {
    if (event.mask & IN_IGNORED) watched_.erase(event.watch);
  });
}

}  // namespace headroom::observe
