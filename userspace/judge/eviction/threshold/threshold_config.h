// SPDX-License-Identifier: Apache-2.0
// The list of eviction thresholds, built from the maps of a KubeletConfiguration.
#pragma once

#include <headroom/policy.h>
#include <headroom/snapshot.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

namespace headroom {

using StringMap = std::map<std::string, std::string>;

struct ThresholdMaps {
  std::optional<StringMap> hard{};                      // evictionHard; absent: the defaults
  StringMap soft{};                                     // evictionSoft
  StringMap soft_grace{};                               // evictionSoftGracePeriod
  StringMap min_reclaim{};                              // evictionMinimumReclaim
  std::vector<std::string> enforce_node_allocatable{};  // enforceNodeAllocatable
  bool merge_defaults = false;                          // mergeDefaultEvictionSettings
};

// What is wrong with one entry, in the kubelet's words where it has them, then what would be right.
struct ThresholdError {
  std::string map;  // "evictionHard"
  std::string key;  // the signal as written
  std::string what;
  friend bool operator==(const ThresholdError&, const ThresholdError&) = default;
};

// Linux: what holds when no evictionHard is given at all.
StringMap default_eviction_hard();

// Hard thresholds, soft ones, then those of allocatableMemory.available that
// enforceNodeAllocatable: [pods] derives (kubelet: eviction/helpers.go). Every error there is, not
// the first.
tl::expected<std::vector<Threshold>, std::vector<ThresholdError>> build_thresholds(
    const ThresholdMaps& maps);

// containerfs is not configured but follows the filesystem its layers are on (kubelet:
// eviction/helpers.go): imagefs where that is apart and holds them, else nodefs. Those of the user
// make way.
struct WithContainerFs {
  std::vector<Threshold> thresholds;
  bool overwritten = false;  // the user had given some
};
WithContainerFs with_containerfs(std::vector<Threshold> thresholds, ImageStorage images);

// headroom.kernelMemAvailable.
struct KernelMemThreshold {
  bool configured = false;
  std::optional<ThresholdValue> value{};  // absent and configured: off
  friend bool operator==(const KernelMemThreshold&, const KernelMemThreshold&) = default;
};

// The hard threshold of kernel.memAvailable. If it is not configured it accompanies the hard
// threshold of memory.available: 50 MiB, or half of that threshold if that is less. Absent: off.
std::optional<Threshold> kernel_mem_threshold(const KernelMemThreshold& settings,
                                              const std::vector<Threshold>& thresholds);

}  // namespace headroom
