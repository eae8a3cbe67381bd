// SPDX-License-Identifier: Apache-2.0
// What a pod uses of each thing a signal may run short of, part by part.
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

struct PodUsage {
  std::optional<Bytes> working_set;
  std::optional<std::int64_t> processes;
  std::vector<ContainerUsage> containers;
  // emptyDir on disk, configMap, gitRepo, hostPath; not secret, projected, downwardAPI or memory.
  std::vector<FsUsage> local_volumes;
};

}  // namespace headroom
