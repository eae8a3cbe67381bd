// SPDX-License-Identifier: Apache-2.0
// DiskUsage: what a pod's files take, part by part, as last measured.
#pragma once

#include <headroom/units.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace headroom {

// Of a filesystem. An unknown part adds nothing to a sum, as upstream (a hostPath volume has no
// stats: kubernetes/kubernetes 127548).
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
  bool ranked = false;   // the kubelet counts it when it ranks: local, and on a disk
  bool counted = false;  // against the pod's ephemeral-storage limit: an emptyDir on a disk
};

struct DiskUsage {
  Instant at;  // when the measuring began: nothing in it is older
  std::vector<ContainerUsage> containers;
  std::vector<VolumeUsage> volumes;
};

}  // namespace headroom
