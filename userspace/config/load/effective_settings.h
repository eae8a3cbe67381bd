// SPDX-License-Identifier: Apache-2.0
// The whole configuration as settings: the value of the command line, else of the files, else the
// default.
#pragma once

#include "config/flags/command_line.h"
#include "config/sections/eviction_settings.h"
#include "config/sections/reserved_settings.h"
#include "config/setting.h"
#include "config/yaml/yaml.h"

#include <functional>
#include <string>

namespace headroom::config {

// `place` says where a line of the document is: "/etc/headroom/headroom.yaml:3".
ConfigSettings effective_settings(const yaml::Node& document, const CommandLine& line,
                                  const EvictionSettings& eviction,
                                  const ReservedSettings& reserves,
                                  const std::function<std::string(int)>& location);

// With nothing configured.
ConfigSettings default_settings();

}  // namespace headroom::config
