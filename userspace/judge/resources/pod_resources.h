// SPDX-License-Identifier: Apache-2.0
// The requests and limits of a pod, summed over its containers by the rules of the code that uses
// the sums.
#pragma once

#include <headroom/pod.h>
#include <headroom/quantity.h>

#include <string_view>

namespace headroom {

// What ranking holds against usage (KUBELET.md 1.6). A sidecar counts as any init container, though
// it runs beside the others, and overhead counts only on top of something: the kubelet's rule (to
// 1.33), copied so that both choose the same victim.
Quantity eviction_request(const Pod& pod, std::string_view resource);

// What the pod's cgroup is sized by (KUBELET.md 3.6). Overhead is part of every request, and of
// those limits that are set.
ResourceList pod_requests(const Pod& pod);
ResourceList pod_limits(const Pod& pod);

// Static, mirror or of system-critical priority: the kubelet never evicts it.
bool is_critical(const Pod& pod);

}  // namespace headroom
