// SPDX-License-Identifier: Apache-2.0
// Merges the hints of all providers into one set of NUMA nodes, and decides whether the topology
// manager's policy admits it (kubelet: cm/topologymanager).
#pragma once

#include "judge/cpuset/hints/cpu_hints.h"
#include "judge/resources/pod_level.h"

#include <headroom/topology.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace headroom {

// The subsets of a machine's NUMA nodes in the order in which hints list them (kubelet:
// cm/topologymanager/bitmask).

// Calls `use` with the subsets of `size` indices below `of`, in lexicographic order, until it says
// no.
template <class Use>
bool for_each_subset(std::size_t of, std::size_t size, Use use) {
  std::vector<std::size_t> picked(size);
  std::iota(picked.begin(), picked.end(), std::size_t{0});
  while (true) {
    if (!use(picked)) return false;
    std::size_t i = size;
    while (i > 0 && picked[i - 1] == of - size + i - 1)
      --i;
    if (i == 0) return true;
    ++picked[i - 1];
    for (; i < size; ++i)
      picked[i] = picked[i - 1] + 1;
  }
}

enum class TopologyPolicy : std::uint8_t { kNone, kBestEffort, kRestricted, kSingleNumaNode };
enum class TopologyScope : std::uint8_t { kContainer, kPod };

std::string_view name(TopologyPolicy policy);  // as in topologyManagerPolicy

struct TopologyRules {
  TopologyPolicy policy = TopologyPolicy::kNone;
  TopologyScope scope = TopologyScope::kContainer;
  bool prefer_closest_numa = false;
  bool pod_level_managers = false;  // featureGates.PodLevelResourceManagers

  // Under the policy none the scope has no effect, as in the kubelet.
  PodLevelMode pod_level_mode() const;
};

struct MergedHint {
  NumaHint best;
  bool admit = true;
};

// Providers that gave nothing at all (an empty map) do not care. The kubelet walks the product of
// all lists; here preferred hints meet by set, and others are folded set by set, so that the work
// grows with the distinct sets: 255 of them on 8 nodes, whatever the number of resources. Two lists
// of more than kMostMergedSets distinct sets are cut to the narrowest ones.
inline constexpr std::size_t kMaxMergedSets = 2048;
MergedHint merge_hints(const TopologyRules& rules, const NumaMap& numa,
                       std::span<const ProviderHints> providers);

}  // namespace headroom
