// SPDX-License-Identifier: Apache-2.0
// The KubeletConfiguration's own keys: those we heed are read, the others are let be.
#pragma once

#include "config/config.h"
#include "config/eviction_told.h"
#include "config/reserves_told.h"
#include "config/section.h"
#include "config/sizing_told.h"

namespace headroom::config {

// `document` is the whole file; keys the kubelet has not got (but for `headroom`) are complained
// of.
void read_kubelet(const Section& document, const std::string& file, Config& config,
                  EvictionTold& eviction, ReservesTold& reserves, SizingTold& sizing);

}  // namespace headroom::config
