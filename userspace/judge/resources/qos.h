// SPDX-License-Identifier: Apache-2.0
// A pod's QoS class, from what its containers ask for (kubelet: qos).
#pragma once

#include <headroom/pod.h>

namespace headroom {

// A declared class wins. Expects what the API server fills in (a limit alone is a request too) to
// be filled in. If the pod has resources of its own, they alone count.
QosClass qos_class(const Pod& pod);

}  // namespace headroom
