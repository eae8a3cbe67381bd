// SPDX-License-Identifier: Apache-2.0
// Counts: so much of each resource by its name, as admission and the scheduler add them up: "cpu"
// in thousandths, all else whole ("memory" in bytes).
#pragma once

#include <headroom/pod.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace headroom {

using ResourceCounts = std::map<std::string, std::int64_t, std::less<>>;

// Rounded up, as the kubelet rounds a pod's sums.
ResourceCounts counts_of(const ResourceList& list);
Quantity quantity_of(std::string_view resource, std::int64_t count);

std::int64_t of(const ResourceCounts& counts, std::string_view resource);  // absent: none
void add(ResourceCounts& sum, const ResourceCounts& more);                 // saturates

// "nvidia.com/gpu": an extended resource, known only to nodes that have it.
bool is_extended(std::string_view resource);

}  // namespace headroom
