// SPDX-License-Identifier: Apache-2.0
// headroom-kube --health: whether the headroom-kube that runs here still asks the kubelet.
#pragma once

#include "config/kubernetes_config.h"

#include <headroom/result.h>

#include <ctime>

namespace headroom::kube {

// The status file is written after every query, whatever came of it. Good: it is younger than the
// longest time between two. A kubelet that does not answer is no failure of headroom-kube. With no
// kubelet to ask, always good.
Result<> health(const config::KubernetesConfig& config, std::time_t now);

}  // namespace headroom::kube
