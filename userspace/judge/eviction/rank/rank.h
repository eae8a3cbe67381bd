// SPDX-License-Identifier: Apache-2.0
// Ranking: in which order pods would be evicted, signal by signal (kubelet: eviction). QoS class is
// no key, and neither is being critical: a pod that may not be evicted is skipped, not ranked
// lower.
#pragma once

#include <headroom/decision.h>
#include <headroom/disk_usage.h>
#include <headroom/judge.h>
#include <headroom/pod.h>
#include <headroom/signal.h>
#include <headroom/snapshot.h>
#include <headroom/units.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace headroom {

// Disk: which parts of a pod count against which filesystem (kubelet: eviction).

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

// What a pod uses of each thing a signal may run short of, part by part.

struct PodUsage {
  std::optional<Bytes> working_set;
  std::optional<Bytes> swap;
  // The kubelet counts processes; what runs out is tasks.
  std::optional<std::int64_t> processes;
  std::vector<ContainerUsage> containers;
  // emptyDir on disk, configMap, gitRepo, hostPath; not secret, projected, downwardAPI or memory.
  std::vector<FsUsage> local_volumes;
};

// Pods whose description is awaited come last (PodDescription). The others, and those among
// themselves: usage unknown, usage over request, lower priority, further over request; then the
// index, so that the order of equals is stable. For tasks, which have no requests: lower priority,
// usage unknown, more of them; for CPUs the same, by how far over the request. A total order where
// indices differ.
bool evicts_before(Signal signal, const Candidate& a, const Candidate& b);

// First to die first. In place; allocates nothing.
void rank(Signal signal, std::span<Candidate> candidates);
// So many of them, and the others after these in any order: far cheaper where few are wanted.
void rank_top(Signal signal, std::size_t most, std::span<Candidate> candidates);

// Whether what a pod has in swap counts as what it uses, and as what its end gives back: on a node
// with swap, where the signal counts it (headroom/swap_room.h).
enum class SwapUse : std::uint8_t { kIgnored, kCounted };
inline SwapUse swap_use(const Policy& policy, const Snapshot& snapshot, Signal signal) {
  const bool counted =
      snapshot.swap.has_value() && (signal == Signal::kKernelMemAvailable ||
                                    (signal == Signal::kMemoryAvailable && policy.swap_aware));
  return counted ? SwapUse::kCounted : SwapUse::kIgnored;
}

// The numbers of one pod for one signal.
Candidate candidate_for(Signal signal, ImageStorage images, const PodReading& reading,
                        SwapUse swap_use = SwapUse::kIgnored);

struct RankInput {
  const Pod* pod = nullptr;         // never null
  const PodUsage* usage = nullptr;  // null: no stats
};

// Indices into `contenders`, first to die first.
std::vector<std::uint32_t> rank(Signal signal, ImageStorage images,
                                std::span<const RankInput> inputs);

}  // namespace headroom
