// SPDX-License-Identifier: Apache-2.0
// Setting: one key of the configuration, its value, and where that came from.
#pragma once

#include <string>
#include <vector>

namespace headroom::config {

struct ConfigSetting {
  std::string path;    // "headroom.disk.walkRate"
  std::string entry;   // of a map: "memory.available"; else ""
  std::string value;   // as JSON; "null": none, or found by the daemon
  std::string origin;  // "default", "found", "/etc/headroom/headroom.yaml:3", "--mode"
  // A newer value that takes effect only at the next start; "" if there is none.
  std::string next{};
  std::string next_origin{};
  friend bool operator==(const ConfigSetting&, const ConfigSetting&) = default;
};
using ConfigSettings = std::vector<ConfigSetting>;

// A KubeletConfiguration that says the same, each line with its origin.
std::string as_yaml(const ConfigSettings& settings);

// The settings in force after `loaded` is adopted by a daemon that runs with `running`: those that
// need a restart keep their value.
ConfigSettings keep_restart_settings(ConfigSettings loaded, const ConfigSettings& running);

}  // namespace headroom::config
