// SPDX-License-Identifier: Apache-2.0
// Disk: which parts of a pod count against which filesystem (kubelet: eviction).
#pragma once

#include <headroom/decision.h>
#include <headroom/disk_usage.h>
#include <headroom/signal.h>
#include <headroom/snapshot.h>

#include <cstdint>
#include <span>

namespace headroom {

constexpr bool is_disk(Signal signal) {
  return condition_of(signal) == Condition::kDiskPressure;
}
constexpr bool counts_inodes(Signal signal) {
  return resource_of(signal) == "inodes";
}

// Whether anything of a pod is on the filesystem of a disk signal. Not where images are alone: no
// death makes room there.
bool holds_pods(Signal signal, ImageStorage images);

// In bytes or inodes, by the signal.
std::int64_t disk_usage(Signal signal, ImageStorage images,
                        std::span<const ContainerUsage> containers,
                        std::span<const FsUsage> local_volumes);
std::int64_t disk_usage(Signal signal, ImageStorage images, const DiskUsage& usage);

// What the kubelet frees of the node before it evicts for this signal.
ReclaimSteps reclaim_steps(Signal signal, ImageStorage images);

}  // namespace headroom
