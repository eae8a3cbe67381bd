// SPDX-License-Identifier: Apache-2.0
// Ranking: in which order pods would be evicted, signal by signal (KUBELET.md 1.6). QoS class is
// no key; nor is being critical: who may not be evicted is passed over, not ranked lower.
#pragma once

#include "judge/eviction/pod_usage.h"

#include <headroom/judge.h>
#include <headroom/pod.h>
#include <headroom/signal.h>

#include <cstdint>
#include <span>
#include <vector>

namespace headroom {

// Memory: no working set known, over its request, lower priority, further over its request; then
// the index, so that equals always fall in the same order. Total where indices differ.
bool evicts_before(const Candidate& a, const Candidate& b);

// First to die first. In place; allocates nothing.
void rank_by_memory(std::span<Candidate> candidates);

// Where containers' data lives: decides which parts of a pod count against which filesystem.
struct ImageStorage {
  bool dedicated = false;  // imagefs is not the kubelet's own filesystem
  bool split = false;      // and the writable layers live apart from the images
};

struct Contender {
  const Pod* pod = nullptr;         // never null
  const PodUsage* usage = nullptr;  // null: no stats
};

// Indices into `contenders`, first to die first; any signal.
std::vector<std::uint32_t> rank(Signal signal, ImageStorage images,
                                std::span<const Contender> contenders);

}  // namespace headroom
