// SPDX-License-Identifier: Apache-2.0
// Configz: a running kubelet's own configuration, as the file headroomd takes for its base.
#pragma once

#include <headroom/result.h>

#include <string>
#include <string_view>

namespace headroom::kube {

// Makes a KubeletConfiguration, with the keys that headroom uses, from the answer of /configz,
// {"kubeletconfig": {...}}. The others are left out: a newer kubelet has keys that would be
// refused. So is registerWithTaints: the API server knows which taints a registered node has, and
// one that was removed since must not evict a pod.
Result<std::string> configuration_from(std::string_view configz);

}  // namespace headroom::kube
