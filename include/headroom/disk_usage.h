// SPDX-License-Identifier: Apache-2.0
// DiskUsage: the disk usage of a pod's files, by part, as last measured.
#pragma once

#include <headroom/units.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace headroom {

// Usage of one filesystem. An unknown part adds nothing to a sum, as in the kubelet (a hostPath
// volume has no stats: kubernetes/kubernetes 127548).
struct FsUsage {
  std::optional<Bytes> used;
  std::optional<std::int64_t> inodes;
};

struct ContainerUsage {
  std::string name;
  FsUsage rootfs;  // the writable layer
  FsUsage logs;
};

struct VolumeUsage {
  std::string name;
  FsUsage usage;
  bool ranked = false;   // the kubelet counts it in the ranking: a local volume on a disk
  bool counted = false;  // counts against the pod's ephemeral-storage limit: an emptyDir on a disk
};

struct DiskUsage {
  Instant at;  // when the measurement began: no value is older
  std::vector<ContainerUsage> containers;
  std::vector<VolumeUsage> volumes;
};

}  // namespace headroom
