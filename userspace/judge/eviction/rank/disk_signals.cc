// SPDX-License-Identifier: Apache-2.0
#include "judge/eviction/rank/disk_signals.h"

#include <limits>

namespace headroom {
namespace {

struct DiskParts {
  bool rootfs = false;
  bool logs = false;
  bool local_volumes = false;
};

bool of_images(Signal signal) {
  return signal == Signal::kImageFsAvailable || signal == Signal::kImageFsInodesFree;
}
bool of_nodefs(Signal signal) {
  return signal == Signal::kNodeFsAvailable || signal == Signal::kNodeFsInodesFree;
}

// The kubelet knows no three filesystems: with writable layers apart from the images it takes them
// to be on nodefs.
DiskParts parts_on(Signal signal, ImageStorage images) {
  constexpr DiskParts kAll{.rootfs = true, .logs = true, .local_volumes = true};
  if (!images.dedicated) return kAll;
  if (images.split && of_images(signal)) return {};
  if (images.split && !images.apart) return kAll;
  const bool nodefs = of_nodefs(signal);
  return {.rootfs = !nodefs, .logs = nodefs, .local_volumes = nodefs};
}

// Saturated.
std::int64_t add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b < 0 ? std::numeric_limits<std::int64_t>::min()
               : std::numeric_limits<std::int64_t>::max();
}

void add_known(std::int64_t& sum, const FsUsage& part, bool inodes) {
  if (inodes && part.inodes) sum = add(sum, *part.inodes);
  if (!inodes && part.used) sum = add(sum, part.used->count);
}

std::int64_t of_containers(DiskParts parts, bool inodes,
                           std::span<const ContainerUsage> containers) {
  std::int64_t sum = 0;
  for (const ContainerUsage& container : containers) {
    if (parts.rootfs) add_known(sum, container.rootfs, inodes);
    if (parts.logs) add_known(sum, container.logs, inodes);
  }
  return sum;
}

}  // namespace

bool holds_pods(Signal signal, ImageStorage images) {
  return !(images.split && of_images(signal));
}

std::int64_t disk_usage(Signal signal, ImageStorage images,
                        std::span<const ContainerUsage> containers,
                        std::span<const FsUsage> local_volumes) {
  const DiskParts parts = parts_on(signal, images);
  const bool inodes = counts_inodes(signal);
  std::int64_t sum = of_containers(parts, inodes, containers);
  if (!parts.local_volumes) return sum;
  for (const FsUsage& volume : local_volumes)
    add_known(sum, volume, inodes);
  return sum;
}

std::int64_t disk_usage(Signal signal, ImageStorage images, const DiskUsage& usage) {
  const DiskParts parts = parts_on(signal, images);
  const bool inodes = counts_inodes(signal);
  std::int64_t sum = of_containers(parts, inodes, usage.containers);
  if (!parts.local_volumes) return sum;
  for (const VolumeUsage& volume : usage.volumes)
    if (volume.ranked) add_known(sum, volume.usage, inodes);
  return sum;
}

ReclaimSteps reclaim_steps(Signal signal, ImageStorage images) {
  if (!is_disk(signal)) return {};
  if (!images.dedicated) return {.containers = true, .images = true};
  if (images.split) return {.containers = !of_images(signal), .images = of_images(signal)};
  return {.containers = !of_nodefs(signal), .images = !of_nodefs(signal)};
}

}  // namespace headroom
