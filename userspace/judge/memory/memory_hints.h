// SPDX-License-Identifier: Apache-2.0
// Which NUMA nodes could give a request its memory, and which of them it gets (kubelet:
// cm/memorymanager/policy_static.go).
#pragma once

#include "judge/cpuset/hints/cpu_hints.h"
#include "judge/memory/memory_policy.h"
#include "judge/memory/memory_state.h"
#include "judge/resources/pod_level.h"

#include <headroom/pod.h>
#include <headroom/topology.h>
#include <headroom/units.h>

#include <map>
#include <string>

#include <tl/expected.hpp>

namespace headroom {

using ResourceSizes = std::map<std::string, Bytes, std::less<>>;  // by resource

// What the container is to have for itself. In a pod with resources of its own, none but for a
// container that is_guaranteed().
ResourceSizes memory_requests(const Pod& pod, const Container& container);
// The most the pod has at once: apps and sidecars, or an init container beside the sidecars started
// before it. As in the kubelet, a resource that only init containers request is missing. If it gets
// a pool, the size of the pool.
ResourceSizes memory_requests(const Pod& pod, PodLevelMode mode);

// What the pod's ordinary init containers leave to its next container.
Bytes reusable_on(const MemoryState& state, const Pod& pod, NodeSet nodes,
                  const std::string& resource);

// Narrow sets first. Preferred are those of as few nodes as an unused machine would need.
HintList memory_hints(const MemoryState& state, const Pod& pod, const ResourceSizes& requested);
ProviderHints for_each_resource(const ResourceSizes& requested, const HintList& hints);
// What the container has already, so that a restarted daemon merges to the same nodes.
ProviderHints hints_again(const MemoryBlocks& blocks, const ResourceSizes& requested);

// As in the kubelet, a container that requests no memory is refused where there is no affinity.
tl::expected<NodeSet, MemoryRefusal> choose_nodes(const MemoryState& state, const Pod& pod,
                                                  const ResourceSizes& requested,
                                                  const NumaHint& affinity);

}  // namespace headroom
