// SPDX-License-Identifier: Apache-2.0
// The parts of the headroom section that are about disks: `disk:` and `reclaim:`.
#pragma once

#include "config/config.h"
#include "config/yaml/section.h"

#include <span>
#include <string_view>

namespace headroom::config {

std::span<const std::string_view> disk_keys();
std::span<const std::string_view> reclaim_keys();

void read_disk(const Section& headroom, Config& config);
void read_reclaim(const Section& headroom, Config& config);

}  // namespace headroom::config
