// SPDX-License-Identifier: Apache-2.0
// The requests and limits of a pod, summed over its containers by the rules of the code that uses
// the sums; and its QoS class.
#pragma once

#include <headroom/pod.h>
#include <headroom/quantity.h>

#include <string_view>

namespace headroom {

// A pod's QoS class, from what its containers ask for (kubelet: qos).

// A declared class wins. Expects what the API server fills in (a limit alone is a request too) to
// be filled in. If the pod has resources of its own, they alone count.
QosClass qos_class(const Pod& pod);

// Whether spec.resources requests or limits something that may stand there: CPU, memory or huge
// pages. `resources: {}` says nothing.
bool has_pod_level_resources(const Pod& pod);

// Completes spec.resources as the API server does (enhancements 2837, 1.36): limits of huge pages
// from the containers', then, if there is a limit, requests from the containers' sum, else from the
// limit. Expects the containers' own requests to be completed.
void default_pod_level_resources(Pod& pod);

// What ranking holds against usage (kubelet: eviction, 14), as the kubelet of 1.36, so that both
// choose the same victim: overhead counts only on top of something, and if the pod has resources of
// its own, the containers' requests do not count at all.
Quantity eviction_request(const Pod& pod, std::string_view resource);

// What the pod's cgroup is sized by (kubelet: cm/helpers_linux.go). Overhead is part of every
// request, and of those limits that are set.
ResourceList pod_requests(const Pod& pod);
ResourceList pod_limits(const Pod& pod);

// Static, mirror or of system-critical priority: the kubelet never evicts it.
bool is_critical(const Pod& pod);

}  // namespace headroom
