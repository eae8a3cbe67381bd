// SPDX-License-Identifier: Apache-2.0
#include "daemon/config/system_containers.h"

#include <string_view>

namespace headroom::daemon {
namespace {

// "/kube" may be the slice kube.slice: the kubelet's systemd cgroup driver adds the suffix.
void add_paths(std::vector<std::string>& paths, std::string_view name) {
  if (name.empty()) return;
  std::string path;
  if (!name.starts_with("/")) path += "/";
  path += name;
  paths.push_back(path);
  if (!name.ends_with(".slice")) paths.push_back(path += ".slice");
}

}  // namespace

std::vector<report::SystemContainer> system_containers(const config::Config& config) {
  report::SystemContainer kubelet{"kubelet", {}}, runtime{"runtime", {}}, misc{"misc", {}},
      pods{"pods", {}};
  add_paths(kubelet.paths, config.system_cgroups.kubelet);
  add_paths(kubelet.paths, config.system_cgroups.kube_reserved);
  kubelet.paths.emplace_back("/system.slice/kubelet.service");
  for (const char* service : {"containerd", "crio", "docker"})
    runtime.paths.push_back(std::string("/system.slice/") + service + ".service");
  add_paths(misc.paths, config.system_cgroups.misc);
  add_paths(misc.paths, config.system_cgroups.system_reserved);
  misc.paths.emplace_back("/system.slice");
  add_paths(pods.paths, config.pods_cgroup);
  return {kubelet, runtime, misc, pods};
}

}  // namespace headroom::daemon
