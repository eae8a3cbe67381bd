// SPDX-License-Identifier: Apache-2.0
// How many exclusive CPUs a container, or a pod as a whole, asks for (kubelet:
// cm/cpumanager/policy_static.go).
#pragma once

#include <headroom/pod.h>

namespace headroom {

// The whole number a container of a Guaranteed pod requests; 0, the shared pool, for any other.
// Expects what the API server fills in (a limit alone is a request too) to be filled in.
int exclusive_cpus_requested(const Pod& pod, const Container& container);

// The most the pod has at once: apps and sidecars, or an init container beside the sidecars started
// before it.
int exclusive_cpus_requested(const Pod& pod);

}  // namespace headroom
