// SPDX-License-Identifier: Apache-2.0
// Configz: turns a running kubelet's configuration into the file that headroomd's configuration is
// based on.
#pragma once

#include <headroom/result.h>

#include <string>
#include <string_view>

namespace headroom::kube {

// Makes a KubeletConfiguration from the response of /configz, {"kubeletconfig": {...}}. It has only
// the keys that headroom uses, because a newer kubelet has keys that headroomd would refuse. It
// omits registerWithTaints: the API server knows the taints of a registered node, and a taint that
// was removed since must not evict a pod.
Result<std::string> configuration_from(std::string_view configz);

}  // namespace headroom::kube
