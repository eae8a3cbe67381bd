// SPDX-License-Identifier: Apache-2.0
// What a pod uses of each thing a signal may run short of, part by part.
#pragma once

#include <headroom/disk_usage.h>
#include <headroom/units.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace headroom {

struct PodUsage {
  std::optional<Bytes> working_set;
  std::optional<Bytes> swap;
  // The kubelet counts processes; what runs out is tasks.
  std::optional<std::int64_t> processes;
  std::vector<ContainerUsage> containers;
  // emptyDir on disk, configMap, gitRepo, hostPath; not secret, projected, downwardAPI or memory.
  std::vector<FsUsage> local_volumes;
};

}  // namespace headroom
