// SPDX-License-Identifier: Apache-2.0
// PodPaths: where a pod's files are on this host.
//
// The kubelet's layout unless configured otherwise. A pattern's placeholders are {uid},
// {namespace}, {name}, {container}, {volume} and {plugin} (empty-dir, configmap, git-repo); a pod
// may have patterns of its own in annotations (headroom.io/rootfs, headroom.io/logs).
#pragma once

#include <headroom/pod.h>

#include <string>
#include <string_view>

namespace headroom {

struct PodPaths {
  std::string volumes = "/var/lib/kubelet/pods/{uid}/volumes/kubernetes.io~{plugin}/{volume}";
  std::string logs = "/var/log/pods/{namespace}_{name}_{uid}/{container}";
  std::string rootfs;  // a container's writable layer; empty: read from the running container
  friend bool operator==(const PodPaths&, const PodPaths&) = default;
};

// "" if there is no such path.
std::string volume_path(const PodPaths& paths, const Pod& pod, const Volume& volume);
std::string logs_path(const PodPaths& paths, const Pod& pod, std::string_view container);
std::string rootfs_path(const PodPaths& paths, const Pod& pod, std::string_view container);

// The error in a pattern; "" if it is valid: absolute, only known placeholders, no "..".
std::string pattern_error(std::string_view pattern);

}  // namespace headroom
