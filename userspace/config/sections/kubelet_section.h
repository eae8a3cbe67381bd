// SPDX-License-Identifier: Apache-2.0
// The KubeletConfiguration's own keys: those that headroom uses are read, the others are ignored.
#pragma once

#include "config/config.h"
#include "config/sections/eviction_settings.h"
#include "config/sections/pod_sizing_settings.h"
#include "config/sections/reserved_settings.h"
#include "config/yaml/section.h"

namespace headroom::config {

// `document` is the whole file. Keys that the kubelet does not have (except `headroom`) are added
// to `warnings`, or to the errors if they look like misspelt keys that headroom uses.
void read_kubelet(const Section& document, const std::string& file, Config& config,
                  EvictionSettings& eviction, ReservedSettings& reserves, PodSizingSettings& sizing,
                  Diagnostics& warnings);

}  // namespace headroom::config
