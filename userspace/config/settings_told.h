// SPDX-License-Identifier: Apache-2.0
// SettingsTold: the whole configuration as settings: what the command line says, else the files,
// else the default.
#pragma once

#include "config/command_line.h"
#include "config/eviction_told.h"
#include "config/reserves_told.h"
#include "config/setting.h"
#include "config/yaml.h"

#include <functional>
#include <string>

namespace headroom::config {

// `place` says where a line of the document is: "/etc/headroom/headroom.yaml:3".
Settings settings_told(const yaml::Node& document, const CommandLine& line,
                       const EvictionTold& eviction, const ReservesTold& reserves,
                       const std::function<std::string(int)>& place);

// Nothing told.
Settings default_settings();

}  // namespace headroom::config
