// SPDX-License-Identifier: Apache-2.0
#include "report/disk/pod_disk_usage.h"

#include <string>

namespace headroom::report {
namespace {

void add(FsUsage& sum, const FsUsage& part) {
  if (part.used) sum.used = Bytes{sum.used.value_or(Bytes{}).count + part.used->count};
  if (part.inodes) sum.inodes = sum.inodes.value_or(0) + *part.inodes;
}

}  // namespace

FsUsage ephemeral_storage(const DiskUsage& usage) {
  FsUsage sum;
  for (const ContainerUsage& container : usage.containers) {
    add(sum, container.rootfs);
    add(sum, container.logs);
  }
  for (const VolumeUsage& volume : usage.volumes)
    if (volume.ranked) add(sum, volume.usage);
  return sum;
}

ContainerUsage usage_of(const DiskUsage& usage, std::string_view name, std::string_view path) {
  ContainerUsage sum{.name = std::string(name), .rootfs = {}, .logs = {}};
  const std::string_view cgroup = path.substr(path.rfind('/') + 1);
  for (const ContainerUsage& part : usage.containers) {
    if (part.name != name && part.name != cgroup) continue;
    add(sum.rootfs, part.rootfs);
    add(sum.logs, part.logs);
  }
  return sum;
}

}  // namespace headroom::report
