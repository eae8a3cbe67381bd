// SPDX-License-Identifier: Apache-2.0
// Configz: a running kubelet's own configuration, as the file headroomd takes for its base.
#pragma once

#include <headroom/result.h>

#include <string>
#include <string_view>

namespace headroom::kube {

// From the answer of /configz, {"kubeletconfig": {...}}, a KubeletConfiguration with those keys
// that headroom heeds. The others are left out: a kubelet newer than we are has keys we would
// refuse. registerWithTaints is, too: which taints a registered node has, the API server knows, and
// one that was taken off it since must not evict anybody.
Result<std::string> configuration_from(std::string_view configz);

}  // namespace headroom::kube
