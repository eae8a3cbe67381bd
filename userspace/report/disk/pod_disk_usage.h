// SPDX-License-Identifier: Apache-2.0
// Sums of what was measured of a pod's files. An unknown part adds nothing, as in the kubelet.
#pragma once

#include <headroom/disk_usage.h>

#include <string_view>

namespace headroom::report {

// Logs, writable layers and local volumes: what the kubelet calls ephemeral-storage. Volumes in
// memory are not part of it.
FsUsage ephemeral_storage(const DiskUsage& usage);

// What was measured of the container with this name, whose cgroup is at `path`: an entry has the
// cgroup's name where the container's was not known.
ContainerUsage usage_of(const DiskUsage& usage, std::string_view name, std::string_view path);

}  // namespace headroom::report
