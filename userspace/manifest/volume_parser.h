// SPDX-License-Identifier: Apache-2.0
// read_volumes(): spec.volumes of a v1 Pod, as far as eviction needs it.
#pragma once

#include "config/yaml/section.h"

#include <headroom/pod.h>

#include <vector>

namespace headroom::observe {

std::vector<Volume> read_volumes(const config::Section& spec);

}  // namespace headroom::observe
