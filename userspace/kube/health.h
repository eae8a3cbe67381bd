// SPDX-License-Identifier: Apache-2.0
// headroom-kube --health: whether the running headroom-kube still queries the kubelet.
#pragma once

#include "config/kubernetes_config.h"

#include <headroom/result.h>

#include <ctime>

namespace headroom::kube {

// headroom-kube writes its status file after every query, also after a failed one: a kubelet that
// does not answer is no failure of headroom-kube. Success if the file is younger than the longest
// time between two queries, or if no kubelet is configured.
Result<> health(const config::KubernetesConfig& config, std::time_t now);

}  // namespace headroom::kube
