// SPDX-License-Identifier: Apache-2.0
// The `headroom:` section: what the kubelet has no key for.
#pragma once

#include "config/config.h"
#include "config/sections/reserved_settings.h"
#include "config/yaml/section.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace headroom::config {

std::span<const std::string_view> headroom_keys();
std::span<const std::string_view> metrics_keys();
std::span<const std::string_view> slices_keys();

void read_headroom(const Section& section, const std::string& file, Config& config,
                   ReservedSettings& reserves);

// What is wrong with a value that a flag may give too; absent: nothing.
std::optional<std::string> listen_error(std::string_view listen);
std::optional<Mode> parse_mode(std::string_view word);

}  // namespace headroom::config
