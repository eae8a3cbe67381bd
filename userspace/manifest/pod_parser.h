// SPDX-License-Identifier: Apache-2.0
// read_pod(): one v1 Pod object as a Pod.
#pragma once

#include "config/yaml/section.h"

#include <headroom/pod.h>

namespace headroom::observe {

// What is wrong is complained of; the pod is then only as good as what could be read.
Pod read_pod(const config::Section& object);

}  // namespace headroom::observe
